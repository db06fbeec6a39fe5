package runtime

import "context"

type announcedKey struct{}

// AllowAnnounced returns a context that decides whether PodStatus may return an announced status: the state of
// the pod that its last event contained, instead of a read. Without it, it may not. Only a [Watcher] can return
// one, and none has to.
// An announced status
//   - includes every change of a SyncPod, KillPod or CollectGarbage that returned before the call of
//     PodStatus, and every change whose event was received before it;
//   - may lack a change whose event was lost or has not been received yet;
//   - is never older than a status that was returned before.
//
// Callers that compare the pod with a list, or for which the events have been incomplete, must not allow
// it.
func AllowAnnounced(ctx context.Context, allow bool) context.Context {
	return context.WithValue(ctx, announcedKey{}, allow)
}

// AnnouncedAllowed reports whether ctx allows announced statuses.
func AnnouncedAllowed(ctx context.Context) bool {
	allowed, _ := ctx.Value(announcedKey{}).(bool)
	return allowed
}
