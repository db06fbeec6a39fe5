package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// podFacts are the properties of a pod that the checks of its containers use.
type podFacts struct {
	spec    *v1.PodSpec
	volumes map[string]*v1.Volume
	claims  map[string]bool
	grace   int64
}

func validateContainers(spec *v1.PodSpec, volumes map[string]*v1.Volume, path *field.Path) (errs field.ErrorList) {
	facts := podFacts{spec: spec, volumes: volumes, claims: make(map[string]bool)}
	for _, claim := range spec.ResourceClaims {
		facts.claims[claim.Name] = true
	}
	if p := spec.TerminationGracePeriodSeconds; p != nil {
		facts.grace = *p
	}

	// One name is one container in status, logs and exec, whatever its kind.
	names := make(map[string]bool)
	ports := make(map[hostPort]bool)
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod has at least one container"))
	}
	for i := range spec.Containers {
		c, at := &spec.Containers[i], path.Child("containers").Index(i)
		errs = append(errs, uniqueLabel(at.Child("name"), c.Name, names)...)
		errs = append(errs, validateContainer(c, facts, at)...)
		errs = append(errs, validateProbes(c, facts, at)...)
		errs = append(errs, validateLifecycle(c.Lifecycle, facts, at.Child("lifecycle"))...)
		errs = append(errs, conflicts(c.Ports, ports, at.Child("ports"))...)
	}
	for i := range spec.InitContainers {
		c, at := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, uniqueLabel(at.Child("name"), c.Name, names)...)
		errs = append(errs, validateContainer(c, facts, at)...)
		if podspec.IsSidecar(c) {
			errs = append(errs, validateProbes(c, facts, at)...)
			errs = append(errs, validateLifecycle(c.Lifecycle, facts, at.Child("lifecycle"))...)
			errs = append(errs, conflicts(c.Ports, ports, at.Child("ports"))...)
			continue
		}
		// Init containers run alone: their ports conflict with their own only.
		errs = append(errs, conflicts(c.Ports, make(map[hostPort]bool), at.Child("ports"))...)
		const why = "may not be set for init containers without restartPolicy=Always"
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(at.Child(f.name), why))
			}
		}
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	return errs
}

func validateContainer(c *v1.Container, facts podFacts, path *field.Path) (errs field.ErrorList) {
	switch image := c.Image; {
	case image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(image) != image:
		errs = append(errs, field.Invalid(path.Child("image"), image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateRestart(c, path)...)
	errs = append(errs, validatePorts(c.Ports, facts.spec.HostNetwork, path.Child("ports"))...)
	errs = append(errs, validateEnv(c, facts, path)...)
	errs = append(errs, validateMounts(c, facts, path)...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	for i, claim := range c.Resources.Claims {
		if !facts.claims[claim.Name] {
			errs = append(errs, field.NotFound(path.Child("resources", "claims").Index(i).Child("name"), claim.Name))
		}
	}
	resized := make(map[v1.ResourceName]bool)
	for i, p := range c.ResizePolicy {
		at := path.Child("resizePolicy").Index(i)
		errs = append(errs, oneOf(at.Child("resourceName"), p.ResourceName, v1.ResourceCPU, v1.ResourceMemory)...)
		errs = append(errs, oneOf(at.Child("restartPolicy"), p.RestartPolicy, v1.NotRequired, v1.RestartContainer)...)
		if resized[p.ResourceName] {
			errs = append(errs, field.Duplicate(at.Child("resourceName"), p.ResourceName))
		}
		resized[p.ResourceName] = true
	}
	return append(errs, validateContainerSecurity(c, facts.spec, path.Child("securityContext"))...)
}

// validateRestart checks a container's own restart policy and its rules.
func validateRestart(c *v1.Container, path *field.Path) (errs field.ErrorList) {
	if c.RestartPolicy != nil {
		errs = append(errs, oneOf(path.Child("restartPolicy"), *c.RestartPolicy,
			v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)...)
	}
	at := path.Child("restartPolicyRules")
	const maxRules, maxCodes = 20, 255
	switch {
	case len(c.RestartPolicyRules) == 0:
		return errs
	case c.RestartPolicy == nil:
		errs = append(errs, field.Required(path.Child("restartPolicy"), "must be set when `restartPolicyRules` is"))
	case len(c.RestartPolicyRules) > maxRules:
		errs = append(errs, field.TooMany(at, len(c.RestartPolicyRules), maxRules))
	}
	for i, rule := range c.RestartPolicyRules {
		at := at.Index(i)
		errs = append(errs, oneOf(at.Child("action"), rule.Action,
			v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)...)
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(at.Child("exitCodes"), ""))
			continue
		}
		at = at.Child("exitCodes")
		errs = append(errs, oneOf(at.Child("operator"), rule.ExitCodes.Operator,
			v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(rule.ExitCodes.Values); n == 0 {
			errs = append(errs, field.Required(at.Child("values"), "at least one exit code"))
		} else if n > maxCodes {
			errs = append(errs, field.TooMany(at.Child("values"), n, maxCodes))
		}
	}
	return errs
}

func validatePorts(ports []v1.ContainerPort, hostNetwork bool, path *field.Path) (errs field.ErrorList) {
	names := make(map[string]bool)
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			errs = append(errs, invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, invalid(at.Child("containerPort"), p.ContainerPort, validation.IsValidPortNum(int(p.ContainerPort)))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, invalid(at.Child("hostPort"), p.HostPort, validation.IsValidPortNum(int(p.HostPort)))...)
		}
		if hostNetwork && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
		}
		if p.HostIP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("hostIP"), p.HostIP, true, nil)...)
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)...)
	}
	return errs
}

// A hostPort is an address of the host that one container can have.
type hostPort struct {
	protocol v1.Protocol
	ip       string
	port     int32
}

// conflicts finds host ports that are taken already.
func conflicts(ports []v1.ContainerPort, taken map[hostPort]bool, path *field.Path) (errs field.ErrorList) {
	for i, p := range ports {
		if p.HostPort == 0 {
			continue
		}
		key := hostPort{p.Protocol, p.HostIP, p.HostPort}
		if taken[key] {
			what := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
			errs = append(errs, field.Duplicate(path.Index(i).Child("hostPort"), what))
		}
		taken[key] = true
	}
	return errs
}
