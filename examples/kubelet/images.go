package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/node"
)

// declareImages declares the flags of the kubelet that say which images stay.
func declareImages(fs *flag.FlagSet, o *options) {
	k := &o.kubelet
	percent := func(of **int32) func(string) error {
		return func(s string) error {
			n, err := strconv.ParseInt(s, 10, 32)
			*of = new(int32(n))
			return err
		}
	}
	fs.Func("image-gc-high-threshold", "`percent` of the images' disk in use from which on images are deleted (default 85)", percent(&k.ImageGCHighThresholdPercent))
	fs.Func("image-gc-low-threshold", "`percent` of it in use to which they are (default 80)", percent(&k.ImageGCLowThresholdPercent))
	fs.DurationVar(&k.ImageMinimumGCAge.Duration, "minimum-image-ttl-duration", k.ImageMinimumGCAge.Duration, "`time` for which no image is deleted that has come (default 2m)")
	fs.StringVar(&o.pauseImage, "pod-infra-container-image", "", "`image` of sandboxes, which is never deleted (default: the one that the runtime says)")
}

// An imageKeeper looks after the images of the node. Its runtime is that of the
// pods, whose images it holds while they are being started. Nil: there are no
// images, as on plain processes.
type imageKeeper struct{ gc *imagegc.Manager }

// keepImages returns who looks after the images.
func (a *assembly) keepImages(ctx context.Context, rt connected) (*imageKeeper, error) {
	opts := a.opts
	if opts.runtime == "process" {
		return nil, nil
	}
	if err := os.MkdirAll(opts.root, 0o750); err != nil {
		return nil, err
	}
	keep, err := a.pauseImage(ctx, rt)
	if err != nil {
		return nil, err
	}
	gc, err := imagegc.New(imagegc.Config{
		Store: rt, Space: imagegc.SpaceOf(rt), Policy: imagePolicy(&opts.kubelet, keep), Path: filepath.Join(opts.root, "images.json"),
		Ready: a.inbox.Synced, Pods: a.pods.wanted, Holders: holdersOf(opts, rt),
		Node: a.nodeRef(), Record: a.record, Logger: a.logger,
		Hooks: a.count.imageGC(func(present []string, before time.Time) {
			if err := rt.ForgetImages(present, before); err != nil {
				a.logger.Warn("records of images that are gone stay", "err", err)
			}
		}),
	})
	return &imageKeeper{gc}, err
}

// imagePolicy is what the KubeletConfiguration says of images.
func imagePolicy(cfg *kubeletconfig.KubeletConfiguration, keep []string) imagegc.Policy {
	return imagegc.Policy{
		Keep:        keep,
		HighPercent: cfg.ImageGCHighThresholdPercent, LowPercent: cfg.ImageGCLowThresholdPercent,
		MinAge: cfg.ImageMinimumGCAge.Duration, MaxAge: cfg.ImageMaximumGCAge.Duration,
	}
}

// pauseImage is what sandboxes are made of. No container has it, and not every
// runtime says that it must stay (ig-19).
func (a *assembly) pauseImage(ctx context.Context, rt connected) ([]string, error) {
	name := a.opts.pauseImage
	if name == "" {
		var err error
		if name, err = rt.SandboxImage(ctx); err != nil {
			a.logger.Warn("it is not known which image sandboxes are made of", "err", err)
		}
	}
	if name == "" {
		return nil, nil // it is pinned, where the runtime does not say
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no image of sandboxes (--pod-infra-container-image): %w", name, err)
	}
	return []string{reference.TagNameOnly(named).String()}, nil
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

// list returns what the node's status says of images (ns-15); nil where nobody
// looks after them.
func (k *imageKeeper) list(most int) func(context.Context) ([]node.Image, error) {
	if k == nil {
		return nil
	}
	return func(ctx context.Context) ([]node.Image, error) {
		var out []node.Image
		for _, i := range k.gc.NodeImages(ctx, most) {
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

// bytes is how much the images of a pod take.
func (k *imageKeeper) bytes(ctx context.Context, pod *v1.Pod) int64 {
	if k == nil {
		return 0
	}
	return k.gc.PodBytes(ctx, pod)
}
