package imagegc

import "context"

const DefaultMinAge = defaultMinAge

var (
	Detect = detect
	StatFS = statFS
)

// Hold pins images by name.
func (m *Manager) Hold(ctx context.Context, images ...string) (func(), error) {
	return m.hold(ctx, images...)
}
