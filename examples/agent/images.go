package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// An imageKeeper looks after the images of the node. Its runtime is that of the
// pods, whose images it holds while they are being started. Nil: there are no
// images, as on plain processes.
type imageKeeper struct{ gc *imagegc.Manager }

// keepImages returns who looks after the images; loop is asked for the pods that are
// wanted, once it is there.
func keepImages(opts options, rt connected, ready func() bool, loop func() *podworker.Loop, record func(runtime.Event), logger *slog.Logger) (*imageKeeper, error) {
	if opts.runtime == "process" {
		return nil, nil
	}
	if err := os.MkdirAll(opts.root, 0o750); err != nil {
		return nil, err
	}
	gc, err := imagegc.New(imagegc.Config{
		Store: rt, Space: imagegc.SpaceOf(rt), Policy: imagePolicy(&opts.kubelet), Path: filepath.Join(opts.root, "images.json"),
		Ready: ready,
		Pods: func() (pods []*v1.Pod) {
			for _, pod := range loop().Pods() {
				if loop().State(pod.UID) < podworker.Cleaning {
					pods = append(pods, pod)
				}
			}
			return pods
		},
		Holders: holdersOf(opts, rt),
		Node:    nodeRef(opts.nodeName), Record: record, Logger: logger,
		Hooks: imagegc.Hooks{Detected: func(present []string, before time.Time) {
			if err := rt.ForgetImages(present, before); err != nil {
				logger.Warn("records of images that are gone stay", "err", err)
			}
		}},
	})
	return &imageKeeper{gc}, err
}

// imagePolicy is what the KubeletConfiguration says of images.
func imagePolicy(cfg *kubeletconfig.KubeletConfiguration) imagegc.Policy {
	return imagegc.Policy{
		HighPercent: cfg.ImageGCHighThresholdPercent, LowPercent: cfg.ImageGCLowThresholdPercent,
		MinAge: cfg.ImageMinimumGCAge.Duration, MaxAge: cfg.ImageMaximumGCAge.Duration,
	}
}

// holdersOf returns what else than images may fill their disk.
func holdersOf(opts options, rt connected) func(context.Context) ([]imagegc.Holder, error) {
	under := func(path ...string) string { return strings.TrimPrefix(filepath.ToSlash(filepath.Join(path...)), "/") }
	return func(ctx context.Context) ([]imagegc.Holder, error) {
		holders, err := imagegc.DirUsage(ctx, os.DirFS("/"), map[string][]string{
			"logs of pods":     {under(opts.logs)},
			"emptyDir volumes": {under(opts.root, "pods", "*", "volumes", "kubernetes.io~empty-dir")},
		})
		_, containers, fsErr := rt.ImageFS(ctx)
		for _, fs := range containers {
			holders = append(holders, imagegc.Holder{What: "container layers", Bytes: fs.Bytes.Value})
		}
		return holders, errors.Join(err, fsErr)
	}
}

// Run looks after the images until ctx ends.
func (k *imageKeeper) Run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	return k.gc.Run(ctx)
}

// list returns what the node's status says of images (ns-15); nil where there are
// none.
func (k *imageKeeper) list(most int) func(context.Context) ([]node.Image, error) {
	if k == nil {
		return nil
	}
	return func(ctx context.Context) ([]node.Image, error) {
		var out []node.Image
		for _, i := range k.gc.NodeImages(ctx, cmp.Or(most, 50)) {
			out = append(out, node.Image{Digests: i.Names, Size: i.SizeBytes})
		}
		return out, nil
	}
}

// free deletes the images that nobody uses.
func (k *imageKeeper) free(ctx context.Context) error {
	if k == nil {
		return nil
	}
	_, err := k.gc.DeleteUnused(ctx)
	return err
}

// over returns the runtime that pods are run on.
func (k *imageKeeper) over(rt runtime.Runtime) runtime.Runtime {
	if k == nil {
		return rt
	}
	return holding{rt, k.gc}
}

// holding is a runtime that holds the images of a pod while it is being started, so
// that none is removed between the look for it and its use.
type holding struct {
	runtime.Runtime
	images *imagegc.Manager
}

func (h holding) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	release, err := h.images.HoldPod(ctx, req.Pod)
	if err != nil {
		return runtime.SyncResult{}, err
	}
	defer release()
	return h.Runtime.SyncPod(ctx, req)
}
