---The Lua interface of the plugin. Nothing here needs a call of `setup()`.
local M = {}

---@type hel.Config
M.config = {
  transcript = { open = true, position = 'right' },
}

---Sets options; what is not given keeps its default.
---@param options? table a part of `hel.Config`
function M.setup(options)
  local config = vim.tbl_deep_extend('force', M.config, options or {})
  vim.validate('transcript.open', config.transcript.open, 'boolean')
  vim.validate('transcript.position', config.transcript.position, function(value)
    return vim.list_contains({ 'left', 'right', 'above', 'below' }, value)
  end, 'left, right, above or below')
  M.config = config
end

---Asks; the answer streams into the transcript.
---@param options? hel.AskOpts
function M.ask(options)
  require('hel.commands').ask_with(options or {})
end

---Ends every running turn.
function M.cancel()
  require('hel.commands').cancel()
end

---What hel is doing now, for a statusline: empty without a server.
---@return string
function M.status()
  return require('hel.events').status()
end

return M
