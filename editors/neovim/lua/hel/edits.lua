---What the server does to files: edits, saves, documents to look at.
local M = {}
local api = vim.api
local namespace = api.nvim_create_namespace('hel.edits')

---@class hel.Place where an edit was made; the mark moves with the text
---@field buf integer
---@field mark integer

---The newest edit of each document, by URI.
---@type table<string, hel.Place>
local places = {}

---Ends the undo block, so that an edit is one step of its own and not part of what the user is typing.
---@param buf integer
local function break_undo(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

---@param change lsp.TextDocumentEdit
---@return boolean
local function is_stale(change)
  local version = change.textDocument.version
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  -- The built-in handler drops such an edit too, but says that it was applied; and where the user has typed
  -- for the first time since the file was opened (version 0) it applies it, be the place right or not.
  return type(version) == 'number' and vim.lsp.util.buf_versions[buf] > version
end

---@param change lsp.TextDocumentEdit
local function remember(change)
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  local row = math.min(change.edits[1].range.start.line, api.nvim_buf_line_count(buf) - 1)
  places[change.textDocument.uri] = { buf = buf, mark = api.nvim_buf_set_extmark(buf, namespace, row, 0, {}) }
end

---A filetype plugin that fails would fail the edit with it.
---@param buf integer
local function load(buf)
  if not api.nvim_buf_is_loaded(buf) then
    vim.cmd(('silent! call bufload(%d)'):format(buf))
  end
end

---@param params lsp.ApplyWorkspaceEditParams
---@param ctx lsp.HandlerContext
---@return lsp.ApplyWorkspaceEditResult
function M.apply_edit(err, params, ctx)
  if not params.edit.documentChanges then
    return vim.lsp.handlers['workspace/applyEdit'](err, params, ctx)
  end
  local function apply(changes)
    return vim.lsp.handlers['workspace/applyEdit'](err, { edit = { documentChanges = changes } }, ctx)
  end
  local edits, others = {}, {}
  for _, change in ipairs(params.edit.documentChanges) do
    table.insert(change.kind and others or edits, change)
  end
  if vim.iter(edits):any(is_stale) then
    return { applied = false, failureReason = 'the buffer has changed since' }
  end
  local created = apply(others)
  if not created.applied then
    return created
  end
  local buffers = vim.tbl_map(function(change)
    return vim.uri_to_bufnr(change.textDocument.uri)
  end, edits)
  vim.iter(buffers):each(load)
  vim.iter(buffers):each(break_undo)
  local result = apply(edits)
  vim.iter(buffers):each(break_undo)
  if result.applied then
    vim.iter(edits):each(remember)
  end
  return result
end

---@param uri string
---@return hel.Place?
function M.place(uri)
  return places[uri]
end

---@param place hel.Place
---@return integer? line from 1; nil when the buffer is gone
function M.line(place)
  if not api.nvim_buf_is_loaded(place.buf) then
    return nil
  end
  local position = api.nvim_buf_get_extmark_by_id(place.buf, namespace, place.mark, {})
  return position[1] and position[1] + 1
end

---@param uri string
---@return integer?
local function loaded_buffer(uri)
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.uri_from_bufnr(buf) == uri
  end)
end

---@param buf integer
---@return boolean
local function write(buf)
  local ok, message = pcall(api.nvim_buf_call, buf, function()
    api.nvim_cmd({ cmd = 'update', mods = { silent = true, lockmarks = true } }, {})
  end)
  if not ok then
    require('hel.client').notify(message:match('E%d+: [^\n]*') or message, vim.log.levels.ERROR)
  end
  return ok and not vim.bo[buf].modified
end

---@param params { uris: string[] }
---@return { saved: string[] }
function M.save(_, params)
  local saved = vim.tbl_filter(function(uri)
    local buf = loaded_buffer(uri)
    return buf ~= nil and write(buf)
  end, params.uris)
  return { saved = saved }
end

---Shows a document in a split, where the built-in handler would take the user's window for it.
---@param params lsp.ShowDocumentParams
---@param ctx lsp.HandlerContext
function M.show_document(err, params, ctx)
  local show = vim.lsp.handlers['window/showDocument']
  if params.external == true or vim.fn.bufwinid(vim.uri_to_bufnr(params.uri)) ~= -1 then
    return show(err, params, ctx)
  end
  local before = api.nvim_get_current_win()
  vim.cmd('botright split')
  local result = show(err, vim.tbl_extend('force', params, { takeFocus = true }), ctx)
  if params.takeFocus == false then
    api.nvim_set_current_win(before)
  end
  return result
end

return M
