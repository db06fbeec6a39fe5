package volumes

import (
	"errors"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/csi/register"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/image"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/nfs"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
)

// A pluginSet constructs the plugins of a volume manager.
type pluginSet struct {
	B           stores.Base
	v           *Volumes
	mounter     volume.Mounter
	allocatable v1.ResourceList

	// Nil: there are none.
	objects payload.Objects
	tokens  *token.Cache
	bundles payload.TrustBundles
	cluster *stores.Cluster
}

// useCluster has the plugins read objects of the API server.
func (p *pluginSet) useCluster(c *stores.Cluster) (err error) {
	p.cluster, p.objects, p.bundles = c, c.Objects, c.Objects
	if p.tokens, err = token.New(token.Config{Get: c.Objects.Token}); err != nil {
		return err
	}
	p.v.Certs, err = certificate.New(certificate.Config{Requests: c.Certs, Logger: p.B.Logger})
	return err
}

// useLocal has the plugins read the objects of the Config. A directory has no tokens.
func (p *pluginSet) useLocal(o *stores.LocalObjects) (err error) {
	p.objects = o
	if p.B.Config.Objects.Source != nil {
		p.tokens, err = token.New(token.Config{Get: o.Token})
	}
	return err
}

// all returns the plugins. Those of CSI drivers require mounts.
func (p *pluginSet) all(cl *Claims) ([]volume.Plugin, error) {
	empty, err := emptydir.New(p.emptyDir())
	if err != nil {
		return nil, err
	}
	plugins := []volume.Plugin{empty, new(hostpath.Plugin), new(image.Plugin)}
	add := func(plugin volume.Plugin, failed error) {
		plugins, err = append(plugins, plugin), errors.Join(err, failed)
	}
	memory := empty.Tmpfs()
	add(configmap.New(configmap.Config{Objects: p.objects, Mounter: p.mounter}))
	add(secret.New(secret.Config{Objects: p.objects, Tmpfs: memory}))
	add(downward.New(downward.Config{Tmpfs: memory}))
	add(projected.New(projected.Config{
		Objects: p.objects, Tokens: p.tokens, TrustBundles: p.bundles, Certificates: p.v.Certs, Tmpfs: memory,
	}))
	add(nfs.New(nfs.Config{Mounter: p.mounter}))
	add(local.New(local.Config{RootDir: p.B.Config.RootDir, Mounter: p.mounter, Exec: exec.New()}))
	if p.v.mounts {
		add(p.csi())
		err = errors.Join(err, p.watchDrivers(cl))
	}
	return plugins, err
}

func (p *pluginSet) emptyDir() emptydir.Config {
	cfg := emptydir.Config{Mounter: p.mounter, Allocatable: p.allocatable, Logger: p.B.Logger}
	if config.Enabled(p.B.Configuration, quotaGate) {
		cfg.Quotas = emptydir.NewProjectQuotas()
	}
	return cfg
}

// watchDrivers constructs the registration of CSI and DRA drivers.
func (p *pluginSet) watchDrivers(cl *Claims) (err error) {
	handlers := map[string]register.Handler{register.CSIPlugin: p.v.csi}
	if cl != nil {
		handlers[register.DRAPlugin] = cl.plugins
	}
	p.v.drivers, err = register.New(register.Config{
		Dir: filepath.Join(p.B.Config.RootDir, "plugins_registry"), Logger: p.B.Logger, Handlers: handlers,
	})
	return err
}
