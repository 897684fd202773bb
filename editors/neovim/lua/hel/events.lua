---What the server says while a turn runs (`hel/event`): keeps the state for the statusline and passes
---everything on to the transcript and to autocommands (`User HelEvent`).
local M = {}

---Running turns, by `turn_key`.
---@type table<string, { client_id: integer, session: string, step: integer }>
local turns = {}

---@param client_id integer
---@param event hel.Event
---@return string
local function turn_key(client_id, event)
  return table.concat({ client_id, event.session, event.turn }, '/')
end

---@param client_id integer
local function turn_ended(client_id)
  -- A question does not say which turn it belongs to, so it stays while another turn of the client runs.
  local others = vim.iter(vim.tbl_values(turns)):any(function(turn)
    return turn.client_id == client_id
  end)
  if not others then
    require('hel.approve').withdraw(client_id)
  end
  vim.cmd.redrawstatus({ bang = true })
end

---Says how a turn ended to somebody who does not see the transcript.
---@param result hel.TurnResult
local function announce(result)
  local text = result.error and result.error.message or result.text
  local first = vim.split(text, '\n')[1]
  local more = first ~= text and ' … (:HelTranscript shows it all)' or ''
  require('hel.client').notify(('hel: %s%s'):format(first, more))
end

---@param event hel.Event
---@param ctx lsp.HandlerContext
function M.on_event(_, event, ctx)
  event = require('hel.client').without_null(event)
  local key = turn_key(ctx.client_id, event)
  local transcript = require('hel.transcript')
  turns[key] = turns[key] or { client_id = ctx.client_id, session = event.session, step = 0 }
  if event.kind == 'step' then
    turns[key].step = event.step
    vim.cmd.redrawstatus({ bang = true })
  end
  transcript.on_event(key, event)
  if event.kind == 'end' then
    turns[key] = nil
    turn_ended(ctx.client_id)
    if not require('hel.page').is_visible() then
      announce(assert(event.result))
    end
  end
  vim.api.nvim_exec_autocmds('User', { pattern = 'HelEvent', modeline = false, data = event })
end

---A server that ends takes its running turns with it.
---@param client_id integer
function M.on_exit(client_id)
  local lost = false
  for key, turn in pairs(turns) do
    if turn.client_id == client_id then
      turns[key] = nil
      lost = true
    end
  end
  turn_ended(client_id)
  if lost then
    local message =
      'The server ended in the middle of a turn; :HelResume goes on with the session, :HelAsk starts another'
    require('hel.transcript').notice(message)
    require('hel.client').notify(message, vim.log.levels.WARN)
  end
end

---@param client_id integer
---@param session string
---@return boolean
function M.is_running(client_id, session)
  return vim.iter(vim.tbl_values(turns)):any(function(turn)
    return turn.client_id == client_id and turn.session == session
  end)
end

---@return string
function M.status()
  if not vim.lsp.get_clients({ name = 'hel' })[1] then
    return ''
  end
  if require('hel.approve').is_open() then
    return 'hel: waiting for your answer'
  end
  local _, turn = next(turns)
  return turn and ('hel: step %d'):format(turn.step) or 'hel'
end

return M
