---Questions of the server (`window/showMessageRequest`), asked through |vim.ui.select()|.
---
---What is asked stands in a floating window, with the diff of an edit; the list itself gets one short line,
---since pickers show their prompt as a title. Nothing but a chosen action allows anything.
local M = {}
local api = vim.api

---@class hel.OpenQuestion
---@field client_id integer
---@field resume fun(choice?: lsp.MessageActionItem)
---@field asked boolean whether the list is on the screen, or the question still waits for normal mode

---@type hel.OpenQuestion[]
local questions = {}

---The diff that belongs to the question that is about to be asked.
---@type hel.Diff?
local diff
---@type integer?
local window

local function close_window()
  if window and api.nvim_win_is_valid(window) then
    api.nvim_win_close(window, true)
  end
  window = nil
end

---@param change hel.Diff
---@return string[]
local function diff_lines(change)
  local unified = (vim.text.diff or vim.diff)(change.before or '', change.after, { ctxlen = 3 })
  return vim.split(unified --[[@as string]], '\n', { trimempty = true })
end

---What there is to read before answering. A diff says all that the rest of its question does.
---@param message string
---@return string[]
local function question_lines(message)
  -- The server parts the lines of a message with a sign, for editors that show it on one line.
  local lines = vim.split(message:gsub(' ⏎ ', '\n'), '\n')
  if not diff then
    return lines
  elseif message:find(diff.title, 1, true) then
    return diff_lines(diff)
  end
  table.insert(lines, '')
  return vim.list_extend(lines, diff_lines(diff))
end

---@param lines string[]
---@param title string
local function open_window(lines, title)
  close_window()
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].modifiable = false
  require('hel.page').set_filetype(buf, 'diff')
  local widths = vim.tbl_map(api.nvim_strwidth, lines)
  local widest = vim.iter(widths):fold(api.nvim_strwidth(title) + 2, math.max)
  local width = math.min(100, vim.o.columns - 4, widest)
  local rows = vim.iter(widths):fold(0, function(sum, columns)
    return sum + math.max(1, math.ceil(columns / width))
  end)
  window = api.nvim_open_win(buf, false, {
    relative = 'editor',
    anchor = 'NE',
    row = 0,
    col = vim.o.columns,
    width = width,
    -- The lower half is left to the list of answers.
    height = math.max(1, math.min(rows, math.floor(vim.o.lines / 2) - 2)),
    border = 'rounded',
    title = ' ' .. title:gsub('%c', ' ') .. ' ',
    style = 'minimal',
    zindex = 40, -- below the windows of pickers
  })
  vim.wo[window][0].wrap = true
  vim.wo[window][0].linebreak = true
  vim.cmd.redraw()
end

---Runs `callback` once keys mean commands: a list that comes up under the fingers of somebody who is typing
---would take those keys for the answer.
---@param callback fun()
local function in_normal_mode(callback)
  local function ready()
    return vim.list_contains({ 'n', 'nt' }, api.nvim_get_mode().mode)
  end
  if ready() then
    callback()
    return
  end
  open_window({ 'A question is waiting until you are back in normal mode.' }, 'hel')
  api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n*',
    callback = function()
      if not ready() then
        return
      end
      vim.schedule(callback)
      return true
    end,
  })
end

---Shows the actions and reports the chosen one; nil when the list was dismissed.
---@generic T
---@param actions T[]
---@param title fun(action: T): string
---@param on_choice fun(choice?: T)
function M.select(message, actions, title, on_choice)
  open_window(question_lines(message), diff and diff.title or 'hel')
  vim.ui.select(actions, {
    kind = 'hel',
    prompt = vim.fn.strcharpart(message:gsub(' ⏎ .*', ''):match('[^\n]*'), 0, 70),
    format_item = title,
  }, on_choice)
end

---@param question hel.OpenQuestion
---@param choice? lsp.MessageActionItem
local function close(question, choice)
  for position, open in ipairs(questions) do
    if open == question then
      table.remove(questions, position)
      close_window()
      question.resume(choice)
      break
    end
  end
end

---@param params lsp.ShowMessageRequestParams
---@param ctx lsp.HandlerContext
function M.show_message_request(_, params, ctx)
  local thread = assert(coroutine.running())
  local question ---@type hel.OpenQuestion
  question = {
    client_id = ctx.client_id,
    asked = false,
    resume = function(choice)
      -- Not at once: a list that blocks answers before the handler below has yielded.
      vim.schedule(function()
        coroutine.resume(thread, choice or vim.NIL)
      end)
    end,
  }
  table.insert(questions, question)
  vim.cmd.redrawstatus({ bang = true })
  in_normal_mode(function()
    if not vim.list_contains(questions, question) then
      return
    end
    question.asked = true
    M.select(params.message, params.actions or {}, function(action)
      return action.title
    end, function(choice)
      close(question, choice)
    end)
  end)
  return coroutine.yield()
end

---Takes back the questions of a client whose turn has ended. A list that is on the screen cannot be taken
---down from outside; what is chosen there comes too late and changes nothing.
---@param client_id integer
function M.withdraw(client_id)
  for _, question in ipairs(vim.list_slice(questions)) do
    if question.client_id == client_id then
      close(question)
    end
  end
end

---@return boolean
function M.is_open()
  return #questions > 0
end

---@param params hel.Diff
function M.show_diff(_, params)
  diff = require('hel.client').without_null(params)
end

function M.close_diff()
  diff = nil
  close_window()
end

return M
