if vim.g.loaded_hel then
  return
end
vim.g.loaded_hel = true

---@param name string
---@param run string function of `hel.commands` that carries the command out
---@param attributes? vim.api.keyset.user_command
local function command(name, run, attributes)
  vim.api.nvim_create_user_command(name, function(opts)
    require('hel.commands')[run](opts)
  end, attributes or {})
end

command('HelAsk', 'ask', { nargs = '*', range = true, bang = true, desc = 'Ask hel' })
command('HelCancel', 'cancel', { desc = 'End the running turns' })
command('HelAnswer', 'answer', { desc = 'Ask a question of hel again that waits for its answer' })
command('HelUndo', 'undo', { desc = 'Take back the edits of the last turn' })
command('HelSessions', 'sessions', { desc = 'Choose a session of this workspace to resume' })
command('HelResume', 'resume', { nargs = '?', desc = 'Resume a session, the newest when none is named' })
command('HelNew', 'new', { desc = 'Start a new session' })
command('HelTools', 'tools', { desc = 'Show the tools and MCP servers' })
command('HelLog', 'log', { desc = "Show the session's run log" })
command('HelTranscript', 'transcript', { desc = 'Show or hide the transcript' })
command('HelAccess', 'access', {
  nargs = '?',
  desc = 'Set what hel may do unasked',
  complete = function(lead)
    return require('hel.commands').complete_access(lead)
  end,
})

vim.keymap.set({ 'n', 'x' }, '<Plug>(hel-ask)', ':HelAsk<CR>', { silent = true, desc = 'Ask hel' })
vim.keymap.set('n', '<Plug>(hel-cancel)', '<Cmd>HelCancel<CR>', { desc = 'Cancel hel' })
vim.keymap.set('n', '<Plug>(hel-undo)', '<Cmd>HelUndo<CR>', { desc = "Undo hel's last turn" })
vim.keymap.set('n', '<Plug>(hel-transcript)', '<Cmd>HelTranscript<CR>', { desc = "Toggle hel's transcript" })
