package device

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Device is a device that a plugin reports.
type Device struct {
	ID      string
	Healthy bool

	// Nodes are the NUMA nodes that it is close to; 0 if it does not report any.
	Nodes topology.Mask
}

// A grant is the devices of one resource that are allocated to a container.
type grant struct {
	IDs map[string]topology.Mask

	// Response is the marshaled ContainerAllocateResponse of the plugin. If nil, Allocate
	// is called again before the container is created.
	Response []byte

	// pending is true until the plugin has answered the first call of Allocate. The devices
	// are not free, but nothing is on disk.
	pending bool

	// idle is true if the pod did not run when the manager was opened: the devices are
	// kept only if they still exist when the pod is admitted.
	idle bool
}

// A resource is the devices with one resource name.
type resource struct {
	devices map[string]Device

	// plugins are the connected plugins in the order of their registration. An update of a
	// plugin without an interruption registers the new instance before the old one ends.
	plugins []*plugin

	// plugin is used: the newest of plugins that has reported its devices, or else the newest;
	// nil if there is none. listed is true if it has reported them.
	plugin *plugin
	listed bool

	// prepares is true if the plugin that is or was used last requires PreStartContainer.
	prepares bool

	// since is when the last plugin disconnected; zero if none has connected since the
	// start.
	since time.Time
}

// A holder identifies a container by pod and name.
type holder struct {
	uid  types.UID
	name string
}

// A ledger contains the devices and their allocations. It performs no I/O.
type ledger struct {
	resources map[string]*resource
	grants    map[holder]map[string]grant // by container and resource
}

func newLedger() ledger {
	return ledger{resources: map[string]*resource{}, grants: map[holder]map[string]grant{}}
}

// of returns the resource with the name and creates it if necessary.
func (l *ledger) of(name string) *resource {
	r := l.resources[name]
	if r == nil {
		r = &resource{devices: map[string]Device{}}
		l.resources[name] = r
	}
	return r
}

// add adds a connected plugin.
func (r *resource) add(p *plugin) {
	r.plugins = append(r.plugins, p)
	r.choose()
}

// at returns the connected plugin with an endpoint, or nil.
func (r *resource) at(endpoint string) *plugin {
	i := slices.IndexFunc(r.plugins, func(p *plugin) bool { return p.endpoint == endpoint })
	if i < 0 {
		return nil
	}
	return r.plugins[i]
}

// remove removes a plugin that has disconnected, and reports whether it was connected. Without
// another one all devices are unhealthy.
func (r *resource) remove(p *plugin, now time.Time) bool {
	i := slices.Index(r.plugins, p)
	if i < 0 {
		return false
	}
	r.plugins = slices.Delete(r.plugins, i, i+1)
	if len(r.plugins) == 0 {
		r.since = now
		for id, d := range r.devices {
			d.Healthy = false
			r.devices[id] = d
		}
	}
	r.choose()
	return true
}

// report sets the devices that a connected plugin reported, and reports whether those of the
// resource, or the plugin that is used, changed. Devices without an ID are ignored; of duplicates
// the last is used.
func (r *resource) report(p *plugin, list []Device) bool {
	if !slices.Contains(r.plugins, p) {
		return false
	}
	p.devices = map[string]Device{}
	for _, d := range list {
		if d.ID != "" {
			p.devices[d.ID] = d
		}
	}
	before, listed, devices := r.plugin, r.listed, r.devices
	r.choose()
	return r.plugin != before || r.listed != listed || !maps.Equal(r.devices, devices)
}

// choose selects the plugin that is used.
func (r *resource) choose() {
	r.plugin, r.listed = nil, false
	for _, p := range slices.Backward(r.plugins) {
		if r.plugin == nil || p.devices != nil && !r.listed {
			r.plugin, r.listed = p, p.devices != nil
		}
	}
	if r.plugin != nil {
		r.prepares = r.plugin.options.GetPreStartRequired()
	}
	if r.listed {
		r.devices = maps.Clone(r.plugin.devices)
	}
}

// healthy returns the number of healthy devices.
func (r *resource) healthy() int {
	n := 0
	for _, d := range r.devices {
		if d.Healthy {
			n++
		}
	}
	return n
}

// free returns the healthy devices of a resource that are not allocated.
func (l *ledger) free(name string) map[string]Device {
	free := map[string]Device{}
	r := l.resources[name]
	if r == nil {
		return free
	}
	for id, d := range r.devices {
		if d.Healthy {
			free[id] = d
		}
	}
	for _, granted := range l.grants {
		for id := range granted[name].IDs {
			delete(free, id)
		}
	}
	return free
}

// give adds an allocation.
func (l *ledger) give(h holder, name string, g grant) {
	if l.grants[h] == nil {
		l.grants[h] = map[string]grant{}
	}
	l.grants[h][name] = g
}

// take removes the allocation of a resource to a container.
func (l *ledger) take(h holder, name string) {
	delete(l.grants[h], name)
	if len(l.grants[h]) == 0 {
		delete(l.grants, h)
	}
}

// pending returns the resources of a container whose plugins are still to be called, in order.
func (l *ledger) pending(h holder) (names []string) {
	for name, g := range l.grants[h] {
		if g.pending {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// dropPending removes what is reserved for a pod.
func (l *ledger) dropPending(uid types.UID) {
	for h := range l.grants {
		if h.uid != uid {
			continue
		}
		for _, name := range l.pending(h) {
			l.take(h, name)
		}
	}
}

// drop removes the allocations of the pods for which is returns true, and reports whether
// there were any.
func (l *ledger) drop(is func(uid types.UID) bool) bool {
	before := len(l.grants)
	maps.DeleteFunc(l.grants, func(h holder, _ map[string]grant) bool { return is(h.uid) })
	return len(l.grants) != before
}

// expire removes resources whose plugin has been disconnected for at least grace, and
// returns their names.
func (l *ledger) expire(now time.Time, grace time.Duration) []string {
	var gone []string
	for name, r := range l.resources {
		if r.plugin == nil && !r.since.IsZero() && now.Sub(r.since) >= grace {
			gone = append(gone, name)
			delete(l.resources, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// extended reports whether a resource may belong to a plugin: its name has a domain, is
// not native to Kubernetes, and is valid in a quota.
func extended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	if !qualified || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasPrefix(name, "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+name)) == 0
}
