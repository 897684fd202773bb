---Finds or starts the language client, and keeps every file of its workspace attached to it.
local M = {}
local api = vim.api

---Calls that wait until their client has been initialized, by client id.
---@type table<integer, fun(client: vim.lsp.Client)[]>
local waiting = {}

---@type integer?
local last_used

---@param message string
---@param level? integer
function M.notify(message, level)
  vim.notify(message, level or vim.log.levels.INFO, { title = 'hel' })
end

---A message without JSON's nulls, which Neovim 0.12 hands on as |vim.NIL|, and 0.11 as nil.
---@generic T
---@param value T
---@return T
function M.without_null(value)
  if value == vim.NIL then
    return nil
  elseif type(value) ~= 'table' then
    return value
  end
  for key, field in pairs(value) do
    value[key] = M.without_null(field)
  end
  return value
end

---Whether the buffer stands for a file that the server may read or edit.
---@param buf integer
---@return boolean
function M.is_file(buf)
  local name = api.nvim_buf_get_name(buf)
  return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and name ~= '' and not name:match('^%a[%w+.-]+://')
end

---@param client vim.lsp.Client
---@param buf integer
local function attach(client, buf)
  if not M.is_file(buf) then
    return
  end
  if client.root_dir and not vim.fs.relpath(client.root_dir, api.nvim_buf_get_name(buf)) then
    return
  end
  vim.lsp.buf_attach_client(buf, client.id)
end

---|vim.lsp.enable()| attaches a buffer when its 'filetype' is set. The server must know of the others
---too, else it would take the file on disk for what the user sees.
---@param client vim.lsp.Client
function M.on_init(client)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    attach(client, buf)
  end
  api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, {
    group = api.nvim_create_augroup('hel.attach.' .. client.id, {}),
    callback = function(args)
      attach(client, args.buf)
    end,
  })
  local calls = waiting[client.id] or {}
  waiting[client.id] = nil
  -- The documents are opened right after this callback, and must be known before anything is asked.
  vim.schedule(function()
    for _, call in ipairs(calls) do
      call(client)
    end
  end)
end

---@param client_id integer
function M.on_exit(_, _, client_id)
  vim.schedule(function()
    pcall(api.nvim_del_augroup_by_name, 'hel.attach.' .. client_id)
    if waiting[client_id] then
      waiting[client_id] = nil
      M.notify('The server ended before it was ready. See :checkhealth hel', vim.log.levels.ERROR)
    end
    require('hel.events').on_exit(client_id)
  end)
end

---@param buf integer
---@return vim.lsp.Client?
local function running(buf)
  local attached = vim.lsp.get_clients({ name = 'hel', bufnr = buf })[1]
  if attached or M.is_file(buf) then
    return attached
  end
  local clients = vim.lsp.get_clients({ name = 'hel' })
  for _, client in ipairs(clients) do
    if client.id == last_used then
      return client
    end
  end
  return clients[1]
end

---@param buf integer
---@param started fun(id: integer?)
local function start(buf, started)
  local config = vim.deepcopy(vim.lsp.config.hel)
  local command = config.cmd
  if type(command) == 'table' and vim.fn.executable(command[1]) == 0 then
    M.notify(('%s was not found. See :checkhealth hel'):format(command[1]), vim.log.levels.ERROR)
    return
  end
  local is_file = M.is_file(buf)
  local function start_in(root_dir)
    config.root_dir = root_dir
    started(vim.lsp.start(config, { bufnr = buf, attach = is_file, reuse_client = config.reuse_client }))
  end
  if type(config.root_dir) == 'function' then
    config.root_dir(buf, start_in)
  elseif is_file then
    start_in(config.root_dir or vim.fs.root(buf, config.root_markers))
  else
    local folder = assert(vim.uv.cwd())
    start_in(config.root_dir or vim.fs.root(folder, config.root_markers) or folder)
  end
end

---Calls back with the client that is in charge of the buffer, started if need be, once it is initialized.
---@param buf integer
---@param callback fun(client: vim.lsp.Client)
function M.with(buf, callback)
  local function use(client)
    last_used = client.id
    callback(client)
  end
  local client = running(buf)
  if client then
    use(client)
    return
  end
  start(buf, function(id)
    local new = id and vim.lsp.get_client_by_id(id)
    if not new then
      return
    elseif new.initialized then
      use(new)
    else
      waiting[new.id] = waiting[new.id] or {}
      table.insert(waiting[new.id], use)
    end
  end)
end

---Carries out a command of the server. Without `failed` an error is shown to the user.
---@param client vim.lsp.Client
---@param command string
---@param argument table
---@param done? fun(result: any)
---@param failed? fun(message: string)
function M.execute(client, command, argument, done, failed)
  local params = { command = command, arguments = { next(argument) and argument or vim.empty_dict() } }
  client:request('workspace/executeCommand', params, function(err, result)
    if not err then
      if done then
        done(M.without_null(result))
      end
    elseif failed then
      failed(err.message)
    else
      M.notify(err.message, vim.log.levels.ERROR)
    end
  end)
end

return M
