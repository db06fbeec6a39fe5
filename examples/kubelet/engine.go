package main

import (
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// configureEngine has the engine run pods as a KubeletConfiguration says.
func (c *connected) configureEngine(a *assembly, cfg *cri.Config) (err error) {
	k := a.opts.kubelet
	cfg.DNS, cfg.CallTimeout, cfg.UnsafeSysctls = dnsOf(k), k.RuntimeRequestTimeout.Duration, k.AllowedUnsafeSysctls
	if cfg.Backoff, err = backoffOf(k.CrashLoopBackOff); err != nil {
		return err
	}
	if cfg.Pulls, err = pullsOf(k, a.count.remote.Images()); err != nil {
		return err
	}
	if c.ids, err = a.userNamespaces(); c.ids != nil {
		cfg.UserNamespaces = c.ids
	}
	return err
}

// dnsOf is what containers' resolv.conf is made from. An empty resolvConf is one without
// name servers (dn-4).
func dnsOf(k kubeletconfig.KubeletConfiguration) cri.DNS {
	return cri.DNS{
		ResolvConf: deref(k.ResolverConfig), NoResolvConf: k.ResolverConfig != nil && *k.ResolverConfig == "",
		ClusterDNS: k.ClusterDNS, ClusterDomain: k.ClusterDomain,
	}
}

// backoffOf is how long containers that crash wait.
func backoffOf(k kubeletconfig.CrashLoopBackOffConfig) (plan.BackoffConfig, error) {
	if k.MaxContainerRestartPeriod == nil {
		return plan.BackoffConfig{}, nil
	}
	longest := k.MaxContainerRestartPeriod.Duration
	if longest < time.Second || longest > 300*time.Second {
		return plan.BackoffConfig{}, fmt.Errorf("crashLoopBackOff.maxContainerRestartPeriod is %v: want 1s to 300s", longest)
	}
	return plan.BackoffConfig{Max: longest}, nil
}

// pullsOf returns the configuration of image pulls. hooks count them.
func pullsOf(k kubeletconfig.KubeletConfiguration, hooks images.Hooks) (images.Config, error) {
	cfg := images.Config{
		Hooks: hooks,
		QPS:   float64(deref(k.RegistryPullQPS)), Burst: int(k.RegistryBurst),
		Verify: images.VerifyPolicy(k.ImagePullCredentialsVerificationPolicy), VerifyAllowlist: k.PreloadedImagesVerificationAllowlist,
	}
	if cfg.QPS == 0 {
		cfg.QPS = -1 // no limit
	}
	parallel := deref(k.MaxParallelImagePulls)
	// Without a word on it, more than one at a time means that they are not serialized.
	serial := parallel <= 1
	if k.SerializeImagePulls != nil {
		serial = *k.SerializeImagePulls
	}
	switch {
	case k.MaxParallelImagePulls != nil && parallel < 1:
		return cfg, fmt.Errorf("maxParallelImagePulls is %d: want 1 or more", parallel)
	case serial && parallel > 1:
		return cfg, fmt.Errorf("maxParallelImagePulls is %d, and serializeImagePulls says one after the other", parallel)
	case serial:
		cfg.MaxParallel = 1
	case parallel > 0:
		cfg.MaxParallel = int(parallel)
	default:
		cfg.MaxParallel = images.Unlimited
	}
	return cfg, nil
}

// userNamespaces gives IDs to pods with hostUsers: false. Plain processes have no
// namespaces.
func (a *assembly) userNamespaces() (*userns.Allocator, error) {
	perPod := int64(0)
	if a.opts.kubelet.UserNamespaces != nil {
		perPod = deref(a.opts.kubelet.UserNamespaces.IDsPerPod)
	}
	if perPod < 0 || perPod > math.MaxUint32 {
		return nil, fmt.Errorf("userNamespaces.idsPerPod is %d: want a multiple of 65536", perPod)
	}
	if a.opts.runtime == "process" || goruntime.GOOS != "linux" {
		return nil, nil
	}
	ids, err := userns.New(userns.Config{RootDir: a.opts.root, PerPod: uint32(perPod), MaxPods: int(a.opts.maxPods())})
	if err != nil {
		return nil, fmt.Errorf("userNamespaces: %w", err)
	}
	return ids, ids.Load()
}

// releaseIDs takes the IDs back of pods that are gone.
func (c connected) releaseIDs(gone func(types.UID) bool) error {
	if c.ids == nil {
		return nil
	}
	var errs []error
	for _, uid := range c.ids.Pods() {
		if gone(uid) {
			errs = append(errs, c.ids.Release(uid))
		}
	}
	return errors.Join(errs...)
}

// maxPods are the pods that this node takes (ns-12).
func (o *options) maxPods() int32 {
	k := o.kubelet
	if k.PodsPerCore > 0 {
		return min(k.MaxPods, k.PodsPerCore*int32(goruntime.NumCPU()))
	}
	return k.MaxPods
}
