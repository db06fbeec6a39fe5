package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/volume"
)

// record adds a recorder to cfg if --record-dir is set. It records until stop is called, after the
// kubelet has stopped.
func (o *options) record(cfg *kubelet.Config) (stop func(), err error) {
	if o.recordDir == "" {
		return func() {}, nil
	}
	configuration, err := o.recordedConfiguration()
	if err != nil {
		return nil, err
	}
	r, err := record.New(record.Config{
		Dir: o.recordDir, Node: cfg.NodeName, Configuration: configuration, Logger: cfg.Logger,
		Versions: map[string]string{"kubelet": kubelet.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH},
	})
	if err != nil {
		return nil, fmt.Errorf("--record-dir=%s: %w", o.recordDir, err)
	}
	cfg.Adjust = append(cfg.Adjust,
		compose.Adjust(func(c *cri.Config) {
			r.RuntimeState(c.Dirs.Root) // RootDir is locked
			c.Runtime, c.Images = r.RuntimeService(c.Runtime), r.ImageService(c.Images)
		}),
		compose.Adjust(func(c *volume.Config) { c.Hooks.Operated = r.Volumes }),
		compose.Adjust(r.Agent),
	)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx) // it has logged the error
	}()
	return func() { cancel(); <-ended }, nil
}

// recordedConfiguration returns the configuration without values that may be credentials.
func (o *options) recordedConfiguration() (json.RawMessage, error) {
	return json.Marshal(config.Masked(o.Configuration))
}
