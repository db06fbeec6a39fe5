package imagegc

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubeparts/kubeparts/runtime"
)

// SpaceOf returns a Config.Space that asks the runtime where its images are, and the
// operating system how full that file system is. The runtime has to see the same
// mounts as this program.
func SpaceOf(rt runtime.ImageFSReporter) func(ctx context.Context) (Space, error) {
	return func(ctx context.Context) (Space, error) {
		images, _, err := rt.ImageFS(ctx)
		if err != nil {
			return Space{}, fmt.Errorf("imagegc: %w", err)
		}
		if len(images) == 0 || images[0].Mountpoint == "" {
			return Space{}, errors.New("imagegc: the runtime does not say where its images are")
		}
		return StatFS(images[0].Mountpoint)
	}
}
