"""Which fields of what events say are known: by files of 0.0.420 to 1.0.102."""

from __future__ import annotations

from typing import Final

from tracetui.formats.fields import Envelope, Fields

ENVELOPE: Final = Envelope("data", "agentId ephemeral id parentId timestamp type")
FIELDS: Final = Fields(
    {
        "session.start": (
            "alreadyInUse context contextTier copilotVersion detachedFromSpawningParentSessionId producer "
            "reasoningEffort remoteSteerable selectedModel sessionId startTime version"
        ),
        "session.resume": "alreadyInUse context eventCount remoteSteerable resumeTime selectedModel",
        "session.shutdown": (
            "accountingSnapshot agentMetrics codeChanges conversationTokens currentModel currentTokens errorReason "
            "eventsFileSizeBytes modelMetrics providerModelMetrics sessionStartTime shutdownType systemTokens "
            "tokenDetails toolDefinitionsTokens totalApiDurationMs totalNanoAiu totalPremiumRequests "
            "usageAccountingWatermarks"
        ),
        "session.error": "errorType message providerCallId serviceRequestId stack statusCode",
        "session.info": "infoType message",
        "session.model_change": "contextTier newModel previousModel reasoningEffort source",
        "session.usage_record": "usage",
        "session.truncation": (
            "droppedTokens messagesRemovedDuringTruncation performedBy postTruncationMessagesLength "
            "postTruncationTokensInMessages preTruncationMessagesLength preTruncationTokensInMessages reason "
            "tokenLimit tokensRemovedDuringTruncation"
        ),
        "user.message": (
            "attachments content delivery messageId parentAgentTaskId source supportedNativeDocumentMimeTypes "
            "transformedContent"
        ),
        "system.message": "content metadata role",
        "system.notification": "content kind",
        "assistant.turn_start": "model",
        "assistant.turn_end": "model",
        "assistant.message": (
            "apiCallId chunkCount chunkIndex clientRequestId content encryptedContent messageId model "
            "originatingMessageId outputTokens reasoningOpaque reasoningText requestId rte serviceRequestId "
            "toolRequests"
        ),
        "assistant.reasoning": "content reasoningId",
        "tool.execution_start": "arguments model rte shellToolInfo toolCallId toolName toolTitle",
        "tool.execution_complete": (
            "error isUserRequested model result rte shellExecution success toolCallId toolTelemetry"
        ),
        "subagent.started": (
            "agentDescription agentDisplayName agentName agentType executionMode model modelSelectionSource resumable "
            "taskModelSource toolCallId"
        ),
        "subagent.configured": "model multiTurn toolCallId",
        "subagent.completed": (
            "agentDisplayName agentName durationMs firstDispatchedModel model modelSelectionSource toolCallId "
            "totalTokens totalToolCalls"
        ),
        "abort": "reason",
        "hook.start": "hookInvocationId hookType input",
    },
    "interactionId parentToolCallId turnId",
)
"""Of other kinds too little is known."""
