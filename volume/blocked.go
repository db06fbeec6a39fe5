package volume

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxBlockedLength bounds the cause returned by Blocked in bytes: errors of drivers may be long.
const maxBlockedLength = 1 << 10

// Blocked returns the errors of a pod's volumes that are not mounted, or not unmounted, and the time
// of the first retry. cause is empty if no operation has failed; it is truncated at 1 KiB. It does
// not block. Safe for concurrent use.
func (m *Manager) Blocked(uid types.UID) (cause string, retryAt time.Time) {
	var causes []string
	for _, h := range m.Volumes(uid) {
		if h.Err == "" || h.Desired && h.State == inPlace.String() {
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
	if len(cause) > maxBlockedLength {
		cause = strings.ToValidUTF8(cause[:maxBlockedLength], "") + "…"
	}
	return cause, retryAt
}
