local M = {}

---@param command string
local function check_server(command)
  local health = vim.health
  if vim.fn.executable(command) == 0 then
    health.error(('`%s` was not found'):format(command), {
      'Install it, for instance with `uv tool install hel-lsp` or `pipx install hel-lsp`',
      "Or name it: `vim.lsp.config('hel', { cmd = { '/path/to/hel-lsp' } })`",
    })
    return
  end
  local result = vim.system({ command, '--version' }, { text = true, timeout = 10000 }):wait()
  if result.code == 0 then
    health.ok(('`%s` is %s'):format(vim.fn.exepath(command), vim.trim(result.stdout)))
  else
    health.error(('`%s --version` failed with code %d'):format(command, result.code), vim.trim(result.stderr))
  end
end

function M.check()
  local health = vim.health
  health.start('Neovim')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok(tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is needed')
    return
  end

  health.start('Server')
  local config = vim.lsp.config.hel
  if not config then
    health.error('`lsp/hel.lua` is not on the runtimepath')
    return
  end
  if type(config.cmd) == 'table' then
    check_server(config.cmd[1])
  else
    health.info('The server is started by a function')
  end
  if vim.lsp.is_enabled('hel') then
    health.ok('Enabled: the server starts with the first file')
  else
    health.info("Not enabled: `:HelAsk` starts the server, `vim.lsp.enable('hel')` would do it with the first file")
  end
  local clients = vim.lsp.get_clients({ name = 'hel' })
  for _, client in ipairs(clients) do
    health.ok(
      ('Running in `%s`, %d files attached'):format(
        client.root_dir or 'no workspace',
        vim.tbl_count(client.attached_buffers)
      )
    )
  end
  if #clients == 0 then
    health.info('Not running')
  end
  health.info('`hel-lsp doctor` checks the model, the key and the MCP servers of the current folder')
end

return M
