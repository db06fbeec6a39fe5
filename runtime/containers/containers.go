package containers

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// Config configures a [Runtime].
type Config struct {
	// Backend runs the containers. Required.
	Backend Backend

	// Node is the name of the node. Instances of other nodes in the same backend are ignored.
	// Required.
	Node string

	// Support declares what the backend can do.
	Support Support

	// Engine configures the engine that computes the semantics of pods. Name is required: it is
	// the prefix of container IDs. Runtime and Images must be nil.
	Engine cri.Config
}

// Support declares capabilities of a backend that it cannot show by an interface. A pod that needs one
// that is not set is rejected with the reason UnsupportedByBackend. The zero value is a backend that
// takes images, commands and environments only.
//
// Not rejected is what a backend takes from Container.Config and Group.Config, or ignores: users, capabilities,
// privileged, seccomp, a read-only root file system, host ports, hostname and DNS, sysctls, stop signals. An agent
// whose backend ignores them and whose pods rely on them needs an admitter of its own. A pod with
// runAsNonRoot needs runAsUser: the user of an image is not known.
type Support struct {
	// Mounts: containers see files and directories of this host. Without it and Files, a pod that mounts
	// a volume is rejected, except the default token of its service account, which is not mounted;
	// and there are no hosts file and no terminationMessagePath (State.Message is used).
	Mounts bool

	// Files: the backend copies Container.Volumes into an instance. Without Mounts, pods may then have
	// configMap, secret, downwardAPI and projected volumes, the token of the service account included, if
	// the agent's volumes have their content: a resolved.Resolver. See [Updater].
	Files bool

	// SeparateContainers: pods with containers that do not share a network are accepted. It has no
	// effect with a [Grouper].
	SeparateContainers bool

	// HostNamespaces: pods may use the network, PIDs and IPC of the host.
	HostNamespaces bool

	// Devices: containers may have block devices.
	Devices bool
}

// A Runtime runs pods on a [Backend] with the engine of package cri. It implements all optional
// interfaces of package runtime; what the backend does not support returns runtime.ErrUnsupported.
type Runtime struct {
	*cri.Runtime
	service *service
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime for cfg, or an error that names the invalid field. It performs no calls.
func New(cfg Config) (*Runtime, error) {
	switch {
	case cfg.Backend == nil:
		return nil, errors.New("containers: Config.Backend is nil")
	case cfg.Node == "":
		return nil, errors.New("containers: Config.Node is empty")
	case cfg.Engine.Runtime != nil || cfg.Engine.Images != nil:
		return nil, errors.New("containers: Config.Engine.Runtime and Config.Engine.Images must be nil")
	}
	if err := compose.Check(cfg.Backend, reflect.TypeFor[Grouper](), reflect.TypeFor[Execer](), reflect.TypeFor[Attacher](),
		reflect.TypeFor[StatsProvider](), reflect.TypeFor[Puller](), reflect.TypeFor[Updater](), reflect.TypeFor[Watcher](), reflect.TypeFor[LogReader]()); err != nil {
		return nil, fmt.Errorf("containers: Config.Backend: %w", err)
	}
	s := newService(cfg)
	cfg.Engine.Providers.Volumes = subPaths{cfg.Engine.Providers.Volumes}
	cfg.Engine.Runtime, cfg.Engine.Images = s, imagesOf(s)
	engine, err := cri.New(cfg.Engine)
	if err != nil {
		return nil, fmt.Errorf("containers: Config.Engine: %w", err)
	}
	return &Runtime{engine, s}, nil
}

// Close ends the copying of output of a [LogReader] and waits for it. Nothing is stopped; a new Runtime
// continues. Without a LogReader it does nothing. It always returns nil.
func (r *Runtime) Close() error {
	r.service.logs.close()
	return nil
}

// Admit implements pipeline.Admitter: it rejects a pod that needs what the backend does not support.
func (r *Runtime) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	if rejection := r.service.admit(pod); rejection != nil {
		return rejection
	}
	return r.Runtime.Admit(ctx, pod)
}

// SyncPod implements [runtime.Runtime]. Its error is a *runtime.Rejection for a pod that the backend
// does not support, whose agent did not call Admit.
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod != nil {
		if rejection := r.service.admit(req.Pod); rejection != nil {
			return runtime.SyncResult{}, rejection
		}
	}
	if !r.service.support.Files || req.Pod == nil {
		return r.Runtime.SyncPod(ctx, req)
	}
	req.Volumes = r.service.files.set(req.Pod, req.Volumes)
	res, err := r.Runtime.SyncPod(ctx, req)
	return res, errors.Join(err, r.service.updateFiles(ctx, req.Pod))
}

// KillPod implements [runtime.Runtime].
func (r *Runtime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	err := r.Runtime.KillPod(ctx, req)
	if err == nil {
		r.service.files.forget(req.UID)
	}
	return err
}

// Pods implements [runtime.Lister] with one call of the backend; two of a Grouper.
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	return r.Runtime.Pods(context.WithValue(ctx, viewKey{}, new(sharedView)))
}

// PodStatus implements [runtime.Lister] with one call of the backend; two of a Grouper.
func (r *Runtime) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	return r.Runtime.PodStatus(context.WithValue(ctx, viewKey{}, new(sharedView)), uid)
}
