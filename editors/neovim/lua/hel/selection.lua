---What `:'<,'>HelAsk` is about, as the server counts.
local M = {}
local api = vim.api

---@param buf integer
---@param first integer
---@param last integer
---@return integer first_byte, integer last_byte of a selection within lines, counted from 0, the end exclusive
local function selected_bytes(buf, first, last)
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  local line = api.nvim_buf_get_lines(buf, last - 1, last, true)[1]
  if vim.fn.visualmode() ~= 'v' or from[2] ~= first or to[2] ~= last then
    return 0, #line
  end
  local character = vim.fn.strcharpart(line:sub(to[3]), 0, 1)
  local exclusive = vim.o.selection == 'exclusive'
  return from[3] - 1, math.min(#line, to[3] - 1 + (exclusive and 0 or #character))
end

---@param buf integer
---@param lines [integer, integer]
---@param encoding string
---@return lsp.Range
function M.lsp_range(buf, lines, encoding)
  local first, last = lines[1], lines[2]
  local from, to = selected_bytes(buf, first, last)
  local function position(line, byte)
    local text = api.nvim_buf_get_lines(buf, line - 1, line, true)[1]
    return {
      line = line - 1,
      character = vim.str_utfindex(text, encoding --[[@as 'utf-8']], byte, false),
    }
  end
  return { start = position(first, from), ['end'] = position(last, to) }
end

return M
