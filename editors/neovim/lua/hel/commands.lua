---What the user commands do. Each takes the table of |nvim_create_user_command()|.
local M = {}
local api = vim.api
local client = require('hel.client')

local ACCESS = { 'read-only', 'confirm', 'auto' }

---@param server vim.lsp.Client
---@param argument hel.AskArguments
---@param about string?
---@param new boolean?
local function send(server, argument, about, new)
  local transcript = require('hel.transcript')
  if require('hel').config.transcript.open then
    require('hel.page').open()
  end
  transcript.prompt(argument.prompt, about)
  local function ask()
    client.execute(server, 'hel.ask', argument, nil, function(message)
      transcript.notice(message)
      client.notify(message, vim.log.levels.ERROR)
    end)
  end
  if not new then
    ask()
    return
  end
  client.execute(server, 'hel.newSession', {}, function(result)
    argument.session = result.session
    ask()
  end)
end

---@param options hel.AskOpts
function M.ask_with(options)
  if not options.prompt or options.prompt == '' then
    vim.ui.input({ prompt = 'Ask hel: ' }, function(input)
      if input and input ~= '' then
        M.ask_with(vim.tbl_extend('force', options, { prompt = input }))
      end
    end)
    return
  end
  local buf = options.buf or api.nvim_get_current_buf()
  client.with(buf, function(server)
    ---@type hel.AskArguments
    local argument = { prompt = options.prompt }
    local about
    if client.is_file(buf) then
      argument.textDocument = { uri = vim.uri_from_bufnr(buf) }
      about = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':~:.')
      if options.lines then
        about = ('%s, lines %d to %d'):format(about, options.lines[1], options.lines[2])
        argument.range = require('hel.selection').lsp_range(buf, options.lines, server.offset_encoding)
      end
    end
    send(server, argument, about, options.new)
  end)
end

---@param opts vim.api.keyset.create_user_command.command_args
function M.ask(opts)
  M.ask_with({
    prompt = opts.args,
    new = opts.bang,
    lines = opts.range > 0 and { opts.line1, opts.line2 } or nil,
    buf = api.nvim_get_current_buf(),
  })
end

---A code action of the server's own asks just as `:HelAsk` does, so that the transcript shows the prompt.
---@param command lsp.Command
---@param ctx lsp.HandlerContext
function M.ask_from_code_action(command, ctx)
  local server = assert(vim.lsp.get_client_by_id(ctx.client_id))
  send(server, command.arguments[1] --[[@as hel.AskArguments]])
end

---Runs a command in every server there is, without starting one.
---@param name string
---@param done fun(result: any)
local function everywhere(name, done)
  local servers = vim.lsp.get_clients({ name = 'hel' })
  if #servers == 0 then
    client.notify('No hel server is running')
  end
  for _, server in ipairs(servers) do
    client.execute(server, name, {}, done)
  end
end

function M.cancel()
  everywhere('hel.cancel', function(result)
    if not result.cancelled then
      client.notify('Nothing is running')
    end
  end)
end

function M.answer()
  local approve = require('hel.approve')
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.pending', {}, function(questions)
      local question = questions[1] ---@type hel.Question?
      if not question then
        client.notify('No question is waiting')
        return
      end
      approve.select(question.message, question.actions, tostring, function(action)
        approve.close_diff()
        if action then
          client.execute(server, 'hel.answer', { id = question.id, action = action }, function()
            approve.withdraw(server.id)
          end)
        end
      end)
    end)
  end)
end

function M.undo()
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.undo', {}, function(result)
      local lines = {}
      for _, uri in ipairs(result.reverted) do
        table.insert(lines, 'Reverted ' .. vim.uri_to_fname(uri))
      end
      for _, file in ipairs(result.kept) do
        table.insert(lines, ('Kept %s: %s'):format(vim.uri_to_fname(file.uri), file.reason))
      end
      client.notify(#lines > 0 and table.concat(lines, '\n') or 'There is nothing to undo')
    end)
  end)
end

---@param server vim.lsp.Client
---@param session? string the newest when absent
local function resume(server, session)
  client.execute(server, 'hel.resume', { session = session }, function(result)
    ---@cast result hel.ResumedSession
    if require('hel').config.transcript.open then
      require('hel.page').open()
    end
    -- Of a turn that is running the transcript has more than the conversation so far.
    if not require('hel.events').is_running(server.id, result.session) then
      require('hel.transcript').restore(result.messages)
    end
    if not require('hel.page').is_visible() then
      client.notify('The next question goes on with the resumed session')
    end
  end)
end

---@param opts vim.api.keyset.create_user_command.command_args
function M.resume(opts)
  client.with(api.nvim_get_current_buf(), function(server)
    resume(server, opts.args ~= '' and opts.args or nil)
  end)
end

---@param updated string as `2026-01-31T12:00:00Z`
---@return string in local time
local function local_time(updated)
  local now = os.time()
  local year, month, day, hour, min, sec = updated:match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  -- Both are in UTC and read as if they were not, which the difference does not show.
  local utc = { year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false }
  local age = os.difftime(os.time(os.date('!*t', now) --[[@as osdateparam]]), os.time(utc))
  return os.date('%Y-%m-%d %H:%M', now - age) --[[@as string]]
end

---@param session hel.StoredSession
---@return string
local function session_line(session)
  local turns = session.turns == 1 and '1 turn' or ('%d turns'):format(session.turns)
  return ('%s  %s (%s)'):format(local_time(session.updated), session.title, turns)
end

function M.sessions()
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.sessions', {}, function(sessions)
      ---@cast sessions hel.StoredSession[]
      if #sessions == 0 then
        client.notify('There is no session to resume in this workspace')
        return
      end
      vim.ui.select(sessions, { prompt = 'Resume a session', format_item = session_line }, function(session)
        if session then
          resume(server, session.session)
        end
      end)
    end)
  end)
end

function M.new()
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.newSession', {}, function()
      client.notify('The next question starts a new session')
    end)
  end)
end

---@param lead string
---@return string[]
function M.complete_access(lead)
  return vim.tbl_filter(function(level)
    return vim.startswith(level, lead)
  end, ACCESS)
end

---@param level string
local function set_access(level)
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.setAccess', { access = level }, function(result)
      client.notify('Access is now ' .. result.access)
    end)
  end)
end

---@param opts vim.api.keyset.create_user_command.command_args
function M.access(opts)
  if opts.args ~= '' then
    set_access(opts.args)
    return
  end
  vim.ui.select(ACCESS, { prompt = 'What may hel do unasked?' }, function(level)
    if level then
      set_access(level)
    end
  end)
end

---@param tools hel.Tool[]
---@return string[]
local function tool_lines(tools)
  return vim.tbl_map(function(tool)
    local state = tool.loaded and 'loaded' or 'not loaded'
    local description = vim.split(vim.trim(tool.description), '\n')[1]
    return ('- `%s` (%s, %s): %s'):format(tool.name, tool.access, state, description)
  end, tools)
end

---@param result hel.Tools
---@return string[]
local function tools_page(result)
  local lines = { '# Built-in tools', '' }
  vim.list_extend(lines, tool_lines(result.builtin))
  for _, server in ipairs(result.servers) do
    vim.list_extend(lines, { '', ('# %s: %s'):format(server.name, server.status), '' })
    vim.list_extend(lines, server.diagnostics)
    vim.list_extend(lines, tool_lines(server.tools))
  end
  return vim.split(table.concat(lines, '\n'), '\n')
end

function M.tools()
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.tools', {}, function(result)
      vim.cmd.split({ 'hel://tools', mods = { split = 'botright' } })
      vim.bo.buftype = 'nofile'
      vim.bo.bufhidden = 'wipe'
      vim.bo.swapfile = false
      vim.bo.modifiable = true
      api.nvim_buf_set_lines(0, 0, -1, false, tools_page(result))
      vim.bo.modifiable = false
      require('hel.page').set_filetype(0, 'markdown')
    end)
  end)
end

function M.log()
  client.with(api.nvim_get_current_buf(), function(server)
    client.execute(server, 'hel.openLog', {})
  end)
end

function M.transcript()
  require('hel.page').toggle()
end

return M
