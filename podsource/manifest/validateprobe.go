package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateProbes(c *v1.Container, facts podFacts, path *field.Path) (errs field.ErrorList) {
	for _, probe := range []struct {
		name  string
		probe *v1.Probe
	}{
		{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe},
	} {
		p, at := probe.probe, path.Child(probe.name)
		if p == nil {
			continue
		}
		h := v1.LifecycleHandler{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket}
		errs = append(errs, validateHandler(h, p.GRPC, facts, at)...)
		for _, number := range []struct {
			name  string
			value int32
		}{
			{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds},
			{"periodSeconds", p.PeriodSeconds}, {"successThreshold", p.SuccessThreshold},
			{"failureThreshold", p.FailureThreshold},
		} {
			errs = append(errs, apivalidation.ValidateNonnegativeField(int64(number.value), at.Child(number.name))...)
		}
		grace := at.Child("terminationGracePeriodSeconds")
		if probe.name == "readinessProbe" {
			if p.TerminationGracePeriodSeconds != nil {
				errs = append(errs, field.Invalid(grace, *p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
			}
			continue
		}
		// A container is killed when its liveness or startup probe fails, so it
		// cannot succeed repeatedly afterwards.
		if p.SuccessThreshold != 1 {
			errs = append(errs, field.Invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
		}
		if s := p.TerminationGracePeriodSeconds; s != nil && *s <= 0 {
			errs = append(errs, field.Invalid(grace, *s, "must be greater than 0"))
		}
	}
	return errs
}

func validateLifecycle(l *v1.Lifecycle, facts podFacts, path *field.Path) (errs field.ErrorList) {
	if l == nil {
		return nil
	}
	if l.PostStart != nil {
		errs = append(errs, validateHandler(*l.PostStart, nil, facts, path.Child("postStart"))...)
	}
	if l.PreStop != nil {
		errs = append(errs, validateHandler(*l.PreStop, nil, facts, path.Child("preStop"))...)
	}
	if s := l.StopSignal; s != nil {
		at := path.Child("stopSignal")
		if facts.spec.OS == nil {
			errs = append(errs, field.Forbidden(at, "may not be set for containers with empty `spec.os.name`"))
		} else if facts.spec.OS.Name == v1.Windows {
			errs = append(errs, oneOf(at, *s, v1.SIGKILL, v1.SIGTERM)...)
		} else if !strings.HasPrefix(string(*s), "SIG") {
			errs = append(errs, field.Invalid(at, *s, "must be the name of a signal, such as SIGTERM"))
		}
	}
	return errs
}

// validateHandler checks that exactly one handler is set, and that it is valid. Only probes may have
// grpc.
func validateHandler(h v1.LifecycleHandler, grpc *v1.GRPCAction, facts podFacts, path *field.Path) (errs field.ErrorList) {
	handlers := 0
	if h.Exec != nil {
		handlers++
		if len(h.Exec.Command) == 0 {
			errs = append(errs, field.Required(path.Child("exec", "command"), ""))
		}
	}
	if g := h.HTTPGet; g != nil {
		handlers++
		at := path.Child("httpGet")
		if g.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), ""))
		}
		errs = append(errs, validatePort(g.Port, at.Child("port"))...)
		errs = append(errs, oneOf(at.Child("scheme"), g.Scheme, v1.URISchemeHTTP, v1.URISchemeHTTPS)...)
		for i, header := range g.HTTPHeaders {
			errs = append(errs, invalid(at.Child("httpHeaders").Index(i).Child("name"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
		}
		if p := g.Protocol; p != nil {
			errs = append(errs, oneOf(at.Child("protocol"), *p, v1.HTTPProtocolHTTP1, v1.HTTPProtocolHTTP2)...)
			if *p == v1.HTTPProtocolHTTP2 && g.Scheme != v1.URISchemeHTTP {
				errs = append(errs, field.Invalid(at.Child("scheme"), g.Scheme, "must be HTTP with `protocol` HTTP2"))
			}
		}
	}
	if t := h.TCPSocket; t != nil {
		handlers++
		errs = append(errs, validatePort(t.Port, path.Child("tcpSocket", "port"))...)
	}
	if grpc != nil {
		handlers++
		errs = append(errs, validatePort(intstr.FromInt32(grpc.Port), path.Child("grpc", "port"))...)
	}
	if h.Sleep != nil {
		handlers++
		if s := h.Sleep.Seconds; s < 0 || s > facts.grace {
			errs = append(errs, field.Invalid(path.Child("sleep", "seconds"), s,
				fmt.Sprintf("must be non-negative and at most terminationGracePeriodSeconds (%d)", facts.grace)))
		}
	}
	switch {
	case handlers == 0:
		errs = append(errs, field.Required(path, "must specify a handler type"))
	case handlers > 1:
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("has %d handler types; may specify one", handlers)))
	}
	return errs
}

func validatePort(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return invalid(path, port.IntVal, validation.IsValidPortNum(int(port.IntVal)))
}
