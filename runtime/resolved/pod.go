package resolved

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// A Pod is a pod with everything that it refers to.
type Pod struct {
	UID             types.UID
	Namespace, Name string

	// Containers are the init containers, the containers and the ephemeral containers of the spec, in
	// its order.
	Containers []Container

	// Volumes are the volumes that consist of files, in the order of the spec.
	Volumes []Volume

	// Hostname is empty in the host network.
	Hostname string

	// Hosts is the content of /etc/hosts, with the host aliases of the pod. Empty if the address of the
	// pod is not known, or in the host network.
	Hosts string

	// DNS is the content of /etc/resolv.conf.
	DNS DNS

	// Warnings are texts for events of the pod: pull secrets that cannot be read, name servers
	// that exceed a limit.
	Warnings []string

	// RefreshAt is the time at which the first token or certificate must be replaced. Zero if there
	// is none. [Resolver.Follow] does so.
	RefreshAt time.Time
}

// A Container is a container with its environment.
type Container struct {
	Name, Image, WorkingDir string

	// Err is the reason that the container cannot be started: its environment is incomplete.
	// Its text is the message of the waiting state with the reason CreateContainerConfigError.
	Err error

	// Command and Args have all references to variables expanded. Nil if Err is set, as Env and Mounts.
	Command, Args []string

	// Env are the variables in the order of their definition.
	Env []podenv.Var

	// Mounts are the mounts of all volumes.
	Mounts []Mount

	// Credentials are those for the registry of the image, the pod's before those of the node. Empty
	// means an anonymous pull.
	Credentials []credentials.Credential
}

// A Mount is a volumeMount, with its subPathExpr expanded.
type Mount struct {
	Volume, Path, SubPath string
	ReadOnly              bool
}

// A Volume is a volume that consists of files. Containers mount it read-only.
type Volume struct {
	Name  string
	Files []runtime.File

	// RefreshAt is the time at which a token or certificate of the volume must be replaced,
	// Expiration that at which the first token expires. Zero if there is none.
	RefreshAt, Expiration time.Time
}

// DNS is the content of a resolv.conf.
type DNS struct{ Servers, Searches, Options []string }

// Container returns the container with the name, or nil.
func (p *Pod) Container(name string) *Container {
	i := slices.IndexFunc(p.Containers, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Containers[i]
}

// Volume returns the volume with the name, or nil if there is none that consists of files.
func (p *Pod) Volume(name string) *Volume {
	i := slices.IndexFunc(p.Volumes, func(v Volume) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Volumes[i]
}

// Equal reports whether p and o differ at most in the times at which they are refreshed.
func (p *Pod) Equal(o *Pod) bool { return reflect.DeepEqual(p.timeless(), o.timeless()) }

func (p *Pod) timeless() *Pod {
	if p == nil {
		return nil
	}
	copied := *p
	copied.RefreshAt = time.Time{}
	copied.Volumes = slices.Clone(p.Volumes)
	for i := range copied.Volumes {
		copied.Volumes[i].RefreshAt, copied.Volumes[i].Expiration = time.Time{}, time.Time{}
	}
	return &copied
}

// String returns the name of the pod, and the numbers of its containers and volumes.
func (p *Pod) String() string {
	return fmt.Sprintf("%s/%s (%d containers, %d volumes)", p.Namespace, p.Name, len(p.Containers), len(p.Volumes))
}

// Format implements fmt.Formatter: it writes String for all verbs.
func (p *Pod) Format(s fmt.State, _ rune) { fmt.Fprint(s, p.String()) }

// LogValue implements slog.LogValuer.
func (p *Pod) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String returns the name of the container and the number of its variables: commands may contain secrets.
func (c Container) String() string { return fmt.Sprintf("%s (%d variables)", c.Name, len(c.Env)) }

// Format implements fmt.Formatter: it writes String for all verbs.
func (c Container) Format(s fmt.State, _ rune) { fmt.Fprint(s, c.String()) }

// LogValue implements slog.LogValuer.
func (c Container) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String returns the name of the volume and the number of its files.
func (v Volume) String() string { return fmt.Sprintf("%s (%d files)", v.Name, len(v.Files)) }

// Format implements fmt.Formatter: it writes String for all verbs.
func (v Volume) Format(s fmt.State, _ rune) { fmt.Fprint(s, v.String()) }

// LogValue implements slog.LogValuer.
func (v Volume) LogValue() slog.Value { return slog.StringValue(v.String()) }
