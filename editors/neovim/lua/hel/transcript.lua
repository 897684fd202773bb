---What the transcript says: prompts, answers, tool calls with their arguments folded away, edited places.
local M = {}
local page = require('hel.page')

---The turn whose heading was written last.
---@type string?
local current_turn

---Tool calls that are not done, by turn and call: their headers on the page.
---@type table<string, integer>
local calls = {}

---@param arguments table<string, any>|string
---@return string summary, string[] details
local function describe(arguments)
  if type(arguments) == 'string' then
    return '', vim.split(arguments, '\n')
  end
  local summary, details = {}, {}
  for key, value in vim.spairs(arguments) do
    local text = type(value) == 'string' and value or vim.json.encode(value)
    table.insert(summary, ('%s=%s'):format(key, text))
    vim.list_extend(details, vim.split(('%s: %s'):format(key, text), '\n'))
  end
  local short = arguments.path or arguments.command or table.concat(summary, ' ')
  return vim.fn.strcharpart(tostring(short):gsub('%s+', ' '), 0, 60), details
end

---@param name string
---@param arguments table<string, any>|string
---@param status? hel.CallStatus
---@return string header, string[] details
local function call_lines(name, arguments, status)
  local summary, details = describe(arguments)
  local outcome = status and ('(%s)'):format(status) or ''
  local header = vim.trim(('- `%s` %s %s'):format(name, summary, outcome))
  return header:gsub('  +', ' '), vim.tbl_map(function(line)
    return '      ' .. line
  end, details)
end

---@param key string
---@param event hel.Event
local function tool_call(key, event)
  local id = key .. '/' .. event.id
  local header, details = call_lines(assert(event.name), event.arguments or {}, event.status)
  if not (calls[id] and page.replace_header(calls[id], header)) then
    calls[id] = page.write_folded(header, details)
  end
  if event.status ~= 'pending' and event.status ~= 'running' then
    calls[id] = nil -- some models use an id again
  end
end

---@param uri string
---@return string
local function display_name(uri)
  return vim.fn.fnamemodify(vim.uri_to_fname(uri), ':~:.')
end

---@param event hel.Event
local function edit(event)
  local place = require('hel.edits').place(event.uri)
  local line = place and require('hel.edits').line(place)
  local name = display_name(event.uri) .. (line and (':%d'):format(line) or '')
  local text = event.applied == true and ('- edited %s (+%d −%d)'):format(name, event.added, event.removed)
    or ('- %s: %s, %s'):format(
      event.applied == false and 'not edited' or 'edited, perhaps',
      name,
      event.reason or 'the editor did not say why'
    )
  page.link(page.write('list', vim.split(text, '\n')), { uri = event.uri, place = place })
end

---@param result hel.TurnResult
local function turn_end(result)
  local notes = {}
  if result.error then
    table.insert(notes, ('*Error: %s*'):format(result.error.message))
  elseif result.stopReason ~= 'end_turn' then
    table.insert(notes, ('*%s*'):format((result.stopReason:gsub('_', ' '))))
  end
  if result.unsaved and #result.unsaved > 0 then
    table.insert(notes, ('*Not saved: %s*'):format(table.concat(vim.tbl_map(display_name, result.unsaved), ', ')))
  end
  for _, note in ipairs(notes) do
    page.write('note', vim.split(note, '\n'))
  end
end

---What the user asked, as the start of a turn.
---@param prompt string
---@param about? string
function M.prompt(prompt, about)
  current_turn = nil
  page.write('heading', { '## You' })
  page.write('note', vim.split(prompt, '\n'))
  if about then
    page.write('note', { ('*about %s*'):format(about) })
  end
end

---@param message string
function M.notice(message)
  page.write('note', vim.split(('*%s*'):format(message), '\n'))
end

---@param key string which turn the next lines belong to
local function start_answer(key)
  if current_turn ~= key then
    current_turn = key
    page.write('heading', { '## hel' })
  end
end

---The arguments of a call as an event has them.
---@param written string
---@return table<string, any>|string
local function decode(written)
  local ok, arguments = pcall(vim.json.decode, written, { luanil = { object = true } })
  return ok and type(arguments) == 'table' and arguments or written
end

---Shows a conversation that was resumed in the place of everything else. It does not say how its calls ended.
---@param messages hel.Message[]
function M.restore(messages)
  page.clear()
  calls = {}
  for _, message in ipairs(messages) do
    if message.role == 'user' then
      M.prompt(message.text)
    elseif message.role == 'assistant' then
      start_answer('restored')
      if message.text ~= '' then
        page.write('text', vim.split(message.text, '\n'))
      end
      for _, call in ipairs(message.toolCalls or {}) do
        page.write_folded(call_lines(call.name, decode(call.arguments)))
      end
    end
  end
end

---@param key string which turn
---@param event hel.Event
function M.on_event(key, event)
  if event.kind ~= 'usage' then
    start_answer(key)
  end
  if event.kind == 'text' or event.kind == 'reasoning' then
    page.stream(event.kind --[[@as 'text'|'reasoning']], event.delta)
  elseif event.kind == 'toolCall' then
    tool_call(key, event)
  elseif event.kind == 'edit' then
    edit(event)
  elseif event.kind == 'notice' then
    M.notice(event.message)
  elseif event.kind == 'end' then
    turn_end(assert(event.result))
    current_turn = nil
  end
end

---Goes to the place that the line under the cursor names.
---@return boolean
function M.jump()
  local target = page.target(vim.api.nvim_win_get_cursor(0)[1] - 1)
  if not target then
    return false
  end
  local transcript = vim.api.nvim_get_current_win()
  vim.cmd.wincmd('p')
  if vim.api.nvim_get_current_win() == transcript or vim.bo.buftype ~= '' then
    vim.cmd('aboveleft split')
  end
  local line = target.place and require('hel.edits').line(target.place)
  vim.cmd.buffer(vim.uri_to_bufnr(target.uri))
  vim.bo.buflisted = true
  if line then
    vim.api.nvim_win_set_cursor(0, { line, 0 })
  end
  return true
end

return M
