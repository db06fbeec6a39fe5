package imagegc

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeparts/kubeparts/runtime"
)

// SpaceOf returns a Config.Space that measures the file system where the runtime stores its
// images. The runtime must have the same mounts as this process.
func SpaceOf(rt runtime.ImageFSReporter) func(ctx context.Context) (Space, error) {
	return func(ctx context.Context) (Space, error) {
		images, _, err := rt.ImageFS(ctx)
		if err != nil {
			return Space{}, fmt.Errorf("imagegc: %w", err)
		}
		if len(images) == 0 || images[0].Mountpoint == "" {
			return Space{}, errors.New("imagegc: runtime reports no image file system")
		}
		return statFS(images[0].Mountpoint)
	}
}
