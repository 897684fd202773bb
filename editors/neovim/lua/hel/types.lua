---@meta
---The server's side of the conversation, as it travels over the wire.

---@alias hel.Access 'read-only'|'confirm'|'auto'
---@alias hel.StopReason 'end_turn'|'cancelled'|'max_steps'|'max_tokens'|'refusal'|'error'
---@alias hel.CallStatus 'pending'|'running'|'completed'|'failed'|'rejected'|'cancelled'

---@class hel.Config
---@field transcript hel.Config.Transcript

---@class hel.Config.Transcript
---@field open boolean whether an ask or a resume opens the transcript
---@field position 'left'|'right'|'above'|'below' the side of the screen that it opens on

---@class hel.AskOpts
---@field prompt? string asked for when absent
---@field new? boolean start a new session first
---@field buf? integer the buffer that is asked about; the current one when absent
---@field lines? [integer, integer] first and last line of the selection, from 1
---@field range? lsp.Range the selection as the server is to get it; wins over `lines`

---@class hel.AskArguments argument of `hel.ask`
---@field prompt string
---@field textDocument? lsp.TextDocumentIdentifier
---@field range? lsp.Range
---@field session? string

---@class hel.Event
---@field session string
---@field turn integer
---@field kind 'text'|'reasoning'|'toolCall'|'edit'|'usage'|'step'|'notice'|'end'
---@field delta? string `text` and `reasoning`
---@field id? string `toolCall`
---@field name? string `toolCall`
---@field arguments? table<string, any>|string `toolCall`; a string when it is not a JSON object
---@field status? hel.CallStatus `toolCall`
---@field uri? string `edit`
---@field applied? boolean|vim.NIL `edit`; nil or vim.NIL where it is not known
---@field reason? string `edit` that was not applied, or not for sure
---@field added? integer `edit`
---@field removed? integer `edit`
---@field step? integer `step`
---@field message? string `notice`
---@field result? hel.TurnResult `end`

---@class hel.TurnResult
---@field session string
---@field turn integer
---@field stopReason hel.StopReason
---@field text string
---@field steps integer
---@field unsaved string[]
---@field error? { code: string, message: string }

---@class hel.Diff parameters of `hel/showDiff`
---@field uri string
---@field before? string absent for a new file
---@field after string
---@field title string

---@class hel.Question an element of the result of `hel.pending`
---@field id string
---@field session string
---@field message string
---@field actions string[]

---@class hel.StoredSession an element of the result of `hel.sessions`
---@field session string
---@field title string
---@field updated string as `2026-01-31T12:00:00Z`
---@field turns integer

---@class hel.ResumedSession result of `hel.resume`
---@field session string
---@field messages hel.Message[]

---@class hel.Message
---@field role 'user'|'assistant'|'tool'
---@field text string
---@field toolCalls? hel.ToolCall[] `assistant`
---@field callId? string `tool`

---@class hel.ToolCall
---@field id string
---@field name string
---@field arguments string as the model wrote them

---@class hel.Tool
---@field name string
---@field description string
---@field loaded boolean
---@field access 'read'|'edit'|'execute'

---@class hel.Tools result of `hel.tools`
---@field builtin hel.Tool[]
---@field servers hel.ToolServer[]

---@class hel.ToolServer
---@field name string
---@field status 'untrusted'|'starting'|'ready'|'failed'|'stopped'|'disabled'
---@field protocolVersion? string
---@field tools hel.Tool[]
---@field diagnostics string[]
