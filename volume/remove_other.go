//go:build !linux

package volume

import (
	"context"
	"os"
)

// Other systems have no bind mounts, and what is mounted was looked for.
func removeTree(_ context.Context, dir string) error { return os.RemoveAll(dir) }
