package kubelet

import (
	"errors"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
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
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
)

// volumePlugins constructs the plugins of a volume manager.
type volumePlugins struct {
	b           base
	v           *volumes
	mounter     volume.Mounter
	allocatable func() v1.ResourceList

	// Nil: there are none.
	objects volume.Objects
	tokens  *token.Cache
	bundles projected.TrustBundles
	cluster *cluster
}

// useCluster has the plugins read objects of the API server.
func (p *volumePlugins) useCluster(c *cluster) (err error) {
	p.cluster, p.objects, p.bundles = c, c.objects, c.objects
	if p.tokens, err = token.New(token.Config{Get: c.objects.Token}); err != nil {
		return err
	}
	p.v.certs, err = certificate.New(certificate.Config{Requests: c.certs, Logger: p.b.logger})
	return err
}

// all returns the plugins. Those of CSI drivers require mounts.
func (p *volumePlugins) all(cl *claims) ([]volume.Plugin, error) {
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
	add(downward.New(downward.Config{Allocatable: p.allocatable, Tmpfs: memory}))
	add(projected.New(projected.Config{
		Objects: p.objects, Tokens: p.tokens, TrustBundles: p.bundles, Certificates: p.v.certs, Allocatable: p.allocatable, Tmpfs: memory,
	}))
	add(nfs.New(nfs.Config{Mounter: p.mounter}))
	add(local.New(local.Config{RootDir: p.b.cfg.RootDir, Mounter: p.mounter, Exec: exec.New()}))
	if p.v.mounts {
		add(p.csi())
		err = errors.Join(err, p.watchDrivers(cl))
	}
	return plugins, err
}

func (p *volumePlugins) emptyDir() emptydir.Config {
	cfg := emptydir.Config{Mounter: p.mounter, Allocatable: p.allocatable, Logger: p.b.logger}
	if config.Enabled(p.b.k, quotaGate) {
		cfg.Quotas = emptydir.NewProjectQuotas()
	}
	return cfg
}

// watchDrivers constructs the registration of CSI and DRA drivers.
func (p *volumePlugins) watchDrivers(cl *claims) (err error) {
	handlers := map[string]register.Handler{register.CSIPlugin: p.v.csi}
	if cl != nil {
		handlers[register.DRAPlugin] = cl.plugins
	}
	p.v.drivers, err = register.New(register.Config{
		Dir: filepath.Join(p.b.cfg.RootDir, "plugins_registry"), Logger: p.b.logger, Handlers: handlers,
	})
	return err
}
