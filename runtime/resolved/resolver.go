package resolved

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// A Config configures a [Resolver].
type Config struct {
	// Objects returns ConfigMaps, Secrets and services. kube/client implements it. Required.
	Objects podenv.Objects

	// Tokens returns service account tokens. If nil, a volume with a token is an error.
	Tokens *token.Cache

	// TrustBundles returns ClusterTrustBundles. If nil, a volume with one is an error.
	TrustBundles payload.TrustBundles

	// Certificate returns pod certificates; see [payload.Fetcher]. If nil, a volume with one is an error.
	Certificate func(ctx context.Context, of payload.Volume, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error)

	// Keyring contains the node's registry credentials. The imagePullSecrets of the pod precede
	// them. If nil, the node has none.
	Keyring credentials.Keyring

	// HostIPs returns the addresses of the node, the primary one first. If nil, there are none.
	HostIPs func() []string

	// Allocatable are the resources of the node for pods, which are the limits of
	// containers without limits.
	Allocatable v1.ResourceList

	// DNS configures the resolv.conf of pods, ResolvConf describes the node's. The zero values give
	// pods an empty one.
	DNS        podconfig.DNS
	ResolvConf podconfig.ResolvConf
}

// A Resolver resolves pods. Safe for concurrent use.
type Resolver struct {
	cfg   Config
	files payload.Fetcher

	mu        sync.Mutex // guards the fields below
	followers map[*follower]struct{}
	mounted   map[types.UID]*mounted
	watchers  map[*watcher]struct{}
}

// New returns a Resolver, or an error that names the invalid field.
func New(cfg Config) (*Resolver, error) {
	if cfg.Objects == nil {
		return nil, errors.New("resolved: Config.Objects is nil")
	}
	if err := cfg.DNS.Validate(); err != nil {
		return nil, fmt.Errorf("resolved: Config.DNS: %w", err)
	}
	if cfg.HostIPs == nil {
		cfg.HostIPs = func() []string { return nil }
	}
	return &Resolver{
		cfg: cfg,
		files: payload.Fetcher{
			Objects: cfg.Objects, Tokens: cfg.Tokens, TrustBundles: cfg.TrustBundles, Certificate: cfg.Certificate, Allocatable: cfg.Allocatable,
		},
		followers: map[*follower]struct{}{}, mounted: map[types.UID]*mounted{}, watchers: map[*watcher]struct{}{},
	}, nil
}

// Resolve fetches the objects that the pod refers to and returns the result. It returns an error if a volume
// cannot be resolved or a field of the spec is invalid. An error that concerns one container is its Err.
func (r *Resolver) Resolve(ctx context.Context, pod *v1.Pod) (*Pod, error) {
	p := &Pod{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
	ips := podIPs(pod)
	var err error
	if p.Volumes, err = r.volumes(ctx, pod); err != nil {
		return nil, err
	}
	p.RefreshAt = firstRefresh(p.Volumes)
	ring := r.keyring(ctx, pod, p)
	for c := range podspec.Containers(pod) {
		p.Containers = append(p.Containers, r.container(ctx, pod, c, ips, ring))
	}
	if p.Hostname, err = podconfig.SandboxHostname(pod, r.cfg.DNS.ClusterDomain); err != nil {
		return nil, fmt.Errorf("resolved: %w", err)
	}
	if len(ips) > 0 && !pod.Spec.HostNetwork {
		if p.Hosts, err = podconfig.HostsFile(pod, ips, r.cfg.DNS.ClusterDomain, ""); err != nil {
			return nil, fmt.Errorf("resolved: %w", err)
		}
	}
	dns, err := r.cfg.DNS.ForPod(pod, r.cfg.ResolvConf, r.cfg.HostIPs())
	if err != nil {
		return nil, fmt.Errorf("resolved: %w", err)
	}
	p.DNS = DNS{Servers: dns.Config.GetServers(), Searches: dns.Config.GetSearches(), Options: dns.Config.GetOptions()}
	for _, w := range dns.Warnings {
		if !w.ForNode {
			p.Warnings = append(p.Warnings, w.Message)
		}
	}
	return p, ctx.Err()
}

func podIPs(pod *v1.Pod) (ips []string) {
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	if ips == nil && pod.Status.PodIP != "" {
		ips = []string{pod.Status.PodIP}
	}
	return ips
}

// container resolves a container.
func (r *Resolver) container(ctx context.Context, pod *v1.Pod, c *v1.Container, ips []string, ring credentials.Keyring) Container {
	out := Container{Name: c.Name, Image: c.Image, WorkingDir: c.WorkingDir}
	if c.Image != "" {
		out.Credentials, _ = ring.Lookup(ctx, c.Image, pod) // a broken secret is a warning of the pod
	}
	in := podenv.Inputs{Pod: pod, PodIPs: ips, HostIPs: r.cfg.HostIPs(), Allocatable: r.cfg.Allocatable}
	in.Fetch(ctx, r.cfg.Objects, c)
	env, err := podenv.New(in, c)
	if err == nil {
		err = out.expand(c, env)
	}
	if err != nil {
		return Container{Name: out.Name, Image: out.Image, WorkingDir: out.WorkingDir, Credentials: out.Credentials, Err: err}
	}
	out.Env = env.Vars()
	return out
}

// expand sets what refers to variables.
func (out *Container) expand(c *v1.Container, env *podenv.Env) (err error) {
	if out.Command, err = env.ExpandAll(c.Command); err != nil {
		return err
	}
	if out.Args, err = env.ExpandAll(c.Args); err != nil {
		return err
	}
	for _, m := range c.VolumeMounts {
		sub := m.SubPath
		if m.SubPathExpr != "" {
			if sub, err = env.ExpandSubPath(m.SubPathExpr); err != nil {
				return err
			}
		}
		out.Mounts = append(out.Mounts, Mount{Volume: m.Name, Path: podconfig.AbsolutePath(m.MountPath), SubPath: sub, ReadOnly: m.ReadOnly})
	}
	return nil
}

// keyring returns the credentials of the pod and the node.
func (r *Resolver) keyring(ctx context.Context, pod *v1.Pod, p *Pod) credentials.Keyring {
	var secrets []v1.Secret
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue // the API server permits empty names
		}
		secret, err := r.cfg.Objects.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil || secret == nil {
			p.Warnings = append(p.Warnings, fmt.Sprintf("Unable to retrieve image pull secret %s; attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		secrets = append(secrets, *secret)
	}
	own, err := credentials.FromSecrets(secrets)
	if err != nil {
		p.Warnings = append(p.Warnings, err.Error())
	}
	rings := credentials.Union{own}
	if r.cfg.Keyring != nil {
		rings = append(rings, r.cfg.Keyring)
	}
	return rings
}

// volumes returns the volumes of the pod that consist of files.
func (r *Resolver) volumes(ctx context.Context, pod *v1.Pod) ([]Volume, error) {
	owners := payload.Owners{FSUser: podspec.CommonUser(pod)}
	if sc := pod.Spec.SecurityContext; sc != nil {
		owners.FSGroup = sc.FSGroup
	}
	var volumes []Volume
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		source := payload.SourceOf(&v.VolumeSource)
		if source == nil {
			continue
		}
		content, err := r.files.Content(ctx, payload.Volume{Pod: pod, Name: v.Name, Source: source, Owners: owners})
		if err == nil {
			err = content.Files.Check()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("resolved: volume %q: %w", v.Name, err))
			continue
		}
		volumes = append(volumes, Volume{Name: v.Name, Files: filesOf(content, owners.FSGroup), RefreshAt: content.RefreshAt, Expiration: content.Expiration})
	}
	return volumes, errors.Join(errs...)
}

// firstRefresh returns when the first of the volumes is to be read again; zero if none is.
func firstRefresh(volumes []Volume) (at time.Time) {
	for _, v := range volumes {
		if !v.RefreshAt.IsZero() && (at.IsZero() || v.RefreshAt.Before(at)) {
			at = v.RefreshAt
		}
	}
	return at
}

// readable are the mode bits that the group of a pod has in addition, as [volume.Request.SetOwnership] adds them.
const readable = 0o440

// filesOf returns the files of a volume, sorted by path.
func filesOf(content payload.Content, group *int64) []runtime.File {
	files := make([]runtime.File, 0, len(content.Files))
	for _, path := range slices.Sorted(maps.Keys(content.Files)) {
		f := content.Files[path]
		out := runtime.File{Path: path, Data: f.Data, Mode: f.Mode.Perm(), UID: f.UID}
		if group != nil {
			out.GID, out.Mode = group, out.Mode|readable
		}
		files = append(files, out)
	}
	return files
}
