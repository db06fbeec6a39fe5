package record

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A reading lister inspects pods by calls. Whether the status of an event can take the place of one depends on
// calls in progress and on the order of events at one instant, which a replay does not decide again with
// certainty.
type reading struct{ runtime.Lister }

// Unwrap implements compose.Wrapper: the runtime may be a runtime.Watcher.
func (r reading) Unwrap() any { return r.Lister }

func (r reading) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	return r.Lister.PodStatus(runtime.AllowAnnounced(ctx, false), uid)
}
