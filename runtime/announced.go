package runtime

import "context"

type announcedKey struct{}

// AllowAnnounced returns a context with which PodStatus may return an announced status: the state of the
// pod that its last event contained, instead of a read. Only a [Watcher] can return one, and none has to.
// An announced status
//   - includes every change of a SyncPod, KillPod or CollectGarbage that returned before the call of
//     PodStatus, and every change whose event was received before it;
//   - may lack a change whose event was lost or has not been received yet;
//   - is never older than a status that was returned before.
//
// Callers that compare the pod with a list, or for which the events have been incomplete, must not allow
// it.
func AllowAnnounced(ctx context.Context) context.Context {
	return context.WithValue(ctx, announcedKey{}, true)
}

// AnnouncedAllowed reports whether ctx is derived from a context of [AllowAnnounced].
func AnnouncedAllowed(ctx context.Context) bool { return ctx.Value(announcedKey{}) != nil }
