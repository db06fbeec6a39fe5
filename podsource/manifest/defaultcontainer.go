package manifest

import (
	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func defaultContainer(c *v1.Container, hostNetwork bool) {
	setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
	setDefault(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)

	for i := range c.Ports {
		p := &c.Ports[i]
		setDefault(&p.Protocol, v1.ProtocolTCP)
		if hostNetwork {
			// There the port that is listened on is a port of the host.
			setDefault(&p.HostPort, p.ContainerPort)
		}
	}
	for i := range c.Env {
		defaultEnv(&c.Env[i])
	}
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	if c.Lifecycle != nil {
		defaultHook(c.Lifecycle.PostStart)
		defaultHook(c.Lifecycle.PreStop)
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for name, limit := range c.Resources.Limits {
		if _, set := c.Resources.Requests[name]; set {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = make(v1.ResourceList)
		}
		c.Resources.Requests[name] = limit.DeepCopy()
	}
}

// pullPolicy returns Always for an image with the tag latest or without tag and digest, else
// IfNotPresent, also for an invalid reference, which cannot be pulled.
func pullPolicy(image string) v1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	if tagged, ok := named.(reference.Tagged); ok {
		if tagged.Tag() == "latest" {
			return v1.PullAlways
		}
		return v1.PullIfNotPresent
	}
	if reference.IsNameOnly(named) {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

func defaultEnv(e *v1.EnvVar) {
	if e.ValueFrom == nil {
		return
	}
	if ref := e.ValueFrom.FieldRef; ref != nil {
		setDefault(&ref.APIVersion, "v1")
	}
	if ref := e.ValueFrom.FileKeyRef; ref != nil {
		setPointer(&ref.Optional, false)
	}
}

func defaultProbe(p *v1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func defaultHook(h *v1.LifecycleHandler) {
	if h != nil {
		defaultHTTPGet(h.HTTPGet)
	}
}

func defaultHTTPGet(g *v1.HTTPGetAction) {
	if g != nil {
		setDefault(&g.Path, "/")
		setDefault(&g.Scheme, v1.URISchemeHTTP)
	}
}

// roundUp brings quantities to thousandths, the finest the API keeps.
func roundUp(list v1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q // also if it was exact: its representation may have changed
	}
}
