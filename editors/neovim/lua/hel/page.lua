---The transcript's buffer and windows: text is added at the end, some of it folded, some of it linked to places.
local M = {}
local api = vim.api
local NAME = 'hel://session'

local folds = api.nvim_create_namespace('hel.page.folds')
local links = api.nvim_create_namespace('hel.page.links')

---@alias hel.Paragraph 'heading'|'text'|'reasoning'|'list'|'note'

---@class hel.Target
---@field uri string
---@field place? hel.Place

---What the last lines are; the next thing of another kind starts a paragraph.
---@type hel.Paragraph?
local paragraph

---What lies behind a line, by its extmark in `links`.
---@type table<integer, hel.Target>
local targets = {}

---@param win integer
local function set_window_options(win)
  for option, value in pairs({
    wrap = true,
    linebreak = true,
    foldmethod = 'expr',
    foldexpr = "v:lua.require'hel.page'.foldexpr(v:lnum)",
    foldtext = '',
    foldlevel = 0,
    foldenable = true,
  }) do
    vim.wo[win][0][option] = value
  end
end

---@param buf integer
local function set_keys(buf)
  for key, otherwise in pairs({ ['<CR>'] = '<CR>', gf = 'gF' }) do
    vim.keymap.set('n', key, function()
      if not require('hel.transcript').jump() then
        vim.cmd.normal({ vim.keycode(otherwise), bang = true })
      end
    end, { buffer = buf, desc = 'Go to the edited place' })
  end
end

---For buffers of the plugin's own: somebody's filetype plugin that fails is no reason to show nothing.
---@param buf integer
---@param filetype string
function M.set_filetype(buf, filetype)
  api.nvim_buf_call(buf, function()
    vim.cmd('silent! setlocal filetype=' .. filetype)
  end)
end

---The buffer, made anew when somebody has deleted it.
---@return integer
local function buffer()
  local buf = vim.fn.bufadd(NAME)
  if api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == 'nofile' then
    return buf
  end
  paragraph, targets = nil, {}
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.fn.bufload(buf)
  vim.bo[buf].undolevels = -1
  vim.bo[buf].modifiable = false
  M.set_filetype(buf, 'markdown')
  set_keys(buf)
  api.nvim_create_autocmd('BufWinEnter', {
    group = api.nvim_create_augroup('hel.page', {}),
    buffer = buf,
    callback = function()
      set_window_options(api.nvim_get_current_win())
    end,
  })
  return buf
end

---Changes the buffer; windows whose cursor is on the last line follow.
---@param change fun(buf: integer)
local function modify(change)
  local buf = buffer()
  local last = api.nvim_buf_line_count(buf)
  local following = vim.tbl_filter(function(win)
    return api.nvim_win_get_cursor(win)[1] == last
  end, vim.fn.win_findbuf(buf))
  vim.bo[buf].modifiable = true
  change(buf)
  vim.bo[buf].modifiable = false
  for _, win in ipairs(following) do
    api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
  end
end

---@param buf integer
---@param lines string[] the first goes on the last line of the buffer
local function put(buf, lines)
  local last = api.nvim_buf_line_count(buf) - 1
  local column = #api.nvim_buf_get_lines(buf, last, last + 1, true)[1]
  api.nvim_buf_set_text(buf, last, column, last, column, lines)
end

---Starts a line, after a blank one unless it goes on with a list.
---@param buf integer
---@param kind hel.Paragraph
local function start_line(buf, kind)
  if paragraph ~= nil then
    put(buf, (paragraph == 'list' and kind == 'list') and { '', '' } or { '', '', '' })
  end
  paragraph = kind
end

function M.clear()
  modify(function(buf)
    api.nvim_buf_clear_namespace(buf, folds, 0, -1)
    api.nvim_buf_clear_namespace(buf, links, 0, -1)
    api.nvim_buf_set_lines(buf, 0, -1, true, {})
  end)
  paragraph, targets = nil, {}
end

---@param kind hel.Paragraph
---@param lines string[]
---@return integer row of the first line, from 0
function M.write(kind, lines)
  local row = 0
  modify(function(buf)
    start_line(buf, kind)
    row = api.nvim_buf_line_count(buf) - 1
    put(buf, lines)
  end)
  return row
end

---Goes on with the text that is streaming, or starts one.
---@param kind 'text'|'reasoning'
---@param delta string
function M.stream(kind, delta)
  local lines = vim.split(delta, '\n')
  modify(function(buf)
    local starting = paragraph ~= kind
    if starting then
      start_line(buf, kind)
    end
    if kind == 'reasoning' then
      for position, line in ipairs(lines) do
        lines[position] = (position > 1 or starting) and '> ' .. line or line
      end
    end
    put(buf, lines)
  end)
end

---@param header string
---@param details string[] shown when the fold is opened
---@return integer header for `replace_header`
function M.write_folded(header, details)
  local row = M.write('list', vim.list_extend({ header }, details))
  local mark = api.nvim_buf_set_extmark(buffer(), folds, row, 0, {
    right_gravity = false,
    end_row = row + #details,
    end_col = #(details[#details] or header),
  })
  -- Folds are looked for when a text changes, and the mark was not there yet.
  M.replace_header(mark, header)
  return mark
end

---@param mark integer from `write_folded`
---@param header string
---@return boolean whether the header was still there
function M.replace_header(mark, header)
  local row = api.nvim_buf_get_extmark_by_id(buffer(), folds, mark, {})[1]
  if not row then
    return false
  end
  modify(function(buf)
    local old = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
    api.nvim_buf_set_text(buf, row, 0, row, #old, { header })
  end)
  return true
end

---@param row integer
---@param target hel.Target
function M.link(row, target)
  targets[api.nvim_buf_set_extmark(buffer(), links, row, 0, {})] = target
end

---@param row integer
---@return hel.Target?
function M.target(row)
  local mark = api.nvim_buf_get_extmarks(buffer(), links, { row, 0 }, { row, -1 }, {})[1]
  return mark and targets[mark[1]]
end

---@param lnum integer
---@return string
function M.foldexpr(lnum)
  local row = lnum - 1
  local mark = api.nvim_buf_get_extmarks(0, folds, { row, 0 }, { row, -1 }, { overlap = true })[1]
  if not mark then
    return '0'
  end
  return mark[2] == row and '>1' or '1'
end

---@return boolean
function M.is_visible()
  return vim.fn.bufwinid(buffer()) ~= -1
end

---Opens a split with the transcript; the cursor stays where it is.
function M.open()
  if M.is_visible() then
    return
  end
  local buf = buffer()
  local win = api.nvim_open_win(buf, false, { split = require('hel').config.transcript.position, win = -1 })
  set_window_options(win)
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
end

function M.toggle()
  local win = vim.fn.bufwinid(buffer())
  if win == -1 then
    M.open()
  else
    api.nvim_win_close(win, true)
  end
end

return M
