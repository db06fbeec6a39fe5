package volume

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxBlocked bounds the text of Blocked in bytes: errors of drivers may be long.
const maxBlocked = 1 << 10

// Blocked reports why a pod's volumes are not mounted or not unmounted yet: the failures
// of its volumes, by their names, and when the first of them is retried. cause is
// empty if nothing has failed. It does not block. Safe for concurrent use.
func (m *Manager) Blocked(uid types.UID) (cause string, retryAt time.Time) {
	var causes []string
	for _, h := range m.Volumes(uid) {
		if h.Err == "" || h.Desired && h.State == InPlace {
			continue
		}
		text := h.Err
		if len(h.Names) > 0 {
			text = fmt.Sprintf("volume %q: %s", h.Names[0], h.Err)
		}
		causes = append(causes, text)
		if !h.RetryAt.IsZero() && (retryAt.IsZero() || h.RetryAt.Before(retryAt)) {
			retryAt = h.RetryAt
		}
	}
	cause = strings.Join(causes, "; ")
	if len(cause) > maxBlocked {
		cause = strings.ToValidUTF8(cause[:maxBlocked], "") + "…"
	}
	return cause, retryAt
}
