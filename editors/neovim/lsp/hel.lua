---The server's configuration, for |vim.lsp.enable()|. Everything behind it is loaded on first use.

---@param module string
---@param name string
local function lazy(module, name)
  return function(...)
    return require(module)[name](...)
  end
end

---@type vim.lsp.Config
return {
  cmd = { 'hel-lsp' },
  root_markers = { '.hel', '.git' },
  capabilities = {
    experimental = { hel = { events = true, diff = true, editorTools = { 'save' } } },
  },
  handlers = {
    ['hel/event'] = lazy('hel.events', 'on_event'),
    ['hel/showDiff'] = lazy('hel.approve', 'show_diff'),
    ['hel/closeDiff'] = lazy('hel.approve', 'close_diff'),
    ['hel/save'] = lazy('hel.edits', 'save'),
    ['window/showMessageRequest'] = lazy('hel.approve', 'show_message_request'),
    ['window/showDocument'] = lazy('hel.edits', 'show_document'),
    ['workspace/applyEdit'] = lazy('hel.edits', 'apply_edit'),
  },
  commands = {
    ['hel.ask'] = lazy('hel.commands', 'ask_from_code_action'),
  },
  on_init = lazy('hel.client', 'on_init'),
  on_exit = lazy('hel.client', 'on_exit'),
}
