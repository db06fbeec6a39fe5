package projected

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/fileplugin"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/projected"

// A Config configures a [Plugin]. Volumes that need a nil field fail in SetUp.
type Config struct {
	// Objects returns ConfigMaps and Secrets.
	Objects payload.Objects

	// Tokens returns service account tokens. The cache may be shared with other packages
	// that request tokens on behalf of pods.
	Tokens *token.Cache

	// TrustBundles returns ClusterTrustBundles.
	TrustBundles payload.TrustBundles

	// Certificates returns the certificates of podCertificate sources.
	Certificates *certificate.Cache

	// Tmpfs keeps the files in memory; see emptydir.Plugin.Tmpfs. Its Allocatable are the
	// limits of containers without limits. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin, a volume.Refresher and a volume.ObjectReferrer. Safe for concurrent
// use as volume.Plugin requires.
type Plugin struct {
	fileplugin.Plugin
	cfg Config
}

// New returns the plugin for cfg, or an error if Config.Tmpfs or its Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("projected: Config.Tmpfs or its Mounter is nil")
	}
	fetcher := payload.Fetcher{Objects: cfg.Objects, Tokens: cfg.Tokens, TrustBundles: cfg.TrustBundles}
	if cfg.Certificates != nil {
		fetcher.Certificate = certificates{cfg.Certificates}.of
	}
	return &Plugin{cfg: cfg, Plugin: fileplugin.New(fileplugin.Config{
		Name: Name, Package: "projected", Tmpfs: cfg.Tmpfs, Mounter: cfg.Tmpfs.Mounter, Fetcher: fetcher,
		Is:    func(v *v1.VolumeSource) bool { return v.Projected != nil },
		Empty: func(string) v1.VolumeSource { return v1.VolumeSource{Projected: new(v1.ProjectedVolumeSource)} },
	})}, nil
}

// TearDown implements volume.Plugin. It also discards the tokens of the pod and the certificates of the volume.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := p.Plugin.TearDown(ctx, at); err != nil {
		return err
	}
	if p.cfg.Tokens != nil {
		p.cfg.Tokens.Forget(at.PodUID)
	}
	if p.cfg.Certificates != nil {
		p.cfg.Certificates.Forget(at.PodUID, at.Name)
	}
	return nil
}

type certificates struct{ *certificate.Cache }

// of returns the certificate of the source with an index.
func (c certificates) of(ctx context.Context, v payload.Volume, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error) {
	bundle, err := c.Bundle(ctx, certificate.Source{Pod: v.Pod, Volume: v.Name, Index: index, Projection: from, Warn: v.Warn})
	return bundle.Key, bundle.Chain, bundle.RefreshAt, err
}
