package status

import (
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messageBudget limits the termination messages of all containers of a pod, in bytes (rule
// st-53). It limits other messages too, so that the API accepts every status.
const messageBudget = 12 << 10

// seconds truncates a time to the resolution of the API, whole seconds in UTC, so that a status read
// back from the API equals the one that was written.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// truncate limits the messages of containers to an equal share of the budget for n containers,
// and the pod's own message to the whole budget.
func truncate(s *v1.PodStatus, n int) {
	s.Message = head(s.Message, messageBudget)
	limit := messageBudget / max(n, 1)
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			for _, state := range []*v1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if w := state.Waiting; w != nil && len(w.Message) > limit {
					cut := *w
					cut.Message = head(w.Message, limit)
					state.Waiting = &cut
				}
				if t := state.Terminated; t != nil && len(t.Message) > limit {
					cut := *t // shared with an older status
					cut.Message = head(t.Message, limit)
					state.Terminated = &cut
				}
			}
		}
	}
}

// head returns the first limit bytes of s, without an incomplete character at the end.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
