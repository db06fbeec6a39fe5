package imagegc

import "context"

// Unexported identifiers that external tests use.
const DefaultMinAge = defaultMinAge

var (
	Detect = detect
	StatFS = statFS
)

// Acquire holds images by name.
func (m *Manager) Acquire(ctx context.Context, images ...string) (func(), error) {
	return m.hold(ctx, images...)
}
