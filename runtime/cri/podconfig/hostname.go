package podconfig

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxHostname   = 63 // of a DNS label
	maxKernelName = 64 // of a hostname in Linux
)

// Hostname returns the pod's hostname and its domain, "" if it has none (rule pe-18). Without a
// cluster domain the domain ends in a dot. A hostnameOverride replaces both. The error names the
// invalid field.
func Hostname(pod *v1.Pod, clusterDomain string) (host, domain string, err error) {
	spec := &pod.Spec
	if o := spec.HostnameOverride; o != nil && *o != "" {
		if len(*o) > maxKernelName {
			return "", "", fmt.Errorf("spec.hostnameOverride: %q has more than %d characters", *o, maxKernelName)
		}
		if msgs := validation.IsDNS1123Subdomain(*o); len(msgs) > 0 {
			return "", "", fmt.Errorf("spec.hostnameOverride: %q is not a valid DNS subdomain: %s", *o, strings.Join(msgs, ";"))
		}
		return *o, "", nil
	}
	host = pod.Name
	if spec.Hostname != "" {
		if msgs := validation.IsDNS1123Label(spec.Hostname); len(msgs) > 0 {
			return "", "", fmt.Errorf("spec.hostname: pod Hostname %q is not a valid DNS label: %s", spec.Hostname, strings.Join(msgs, ";"))
		}
		host = spec.Hostname
	} else if !oneWord(host) {
		return "", "", fmt.Errorf("metadata.name: %q has spaces or control characters", host)
	}
	if host, err = truncateHostname(host); err != nil {
		return "", "", err
	}
	if spec.Subdomain == "" {
		return host, "", nil
	}
	if msgs := validation.IsDNS1123Label(spec.Subdomain); len(msgs) > 0 {
		return "", "", fmt.Errorf("spec.subdomain: pod Subdomain %q is not a valid DNS label: %s", spec.Subdomain, strings.Join(msgs, ";"))
	}
	if !oneWord(pod.Namespace) {
		return "", "", fmt.Errorf("metadata.namespace: %q has spaces or control characters", pod.Namespace)
	}
	return host, spec.Subdomain + "." + pod.Namespace + ".svc." + clusterDomain, nil
}

// truncateHostname shortens a pod's name to a DNS label.
func truncateHostname(name string) (string, error) {
	if len(name) <= maxHostname {
		return name, nil
	}
	host := strings.TrimRight(name[:maxHostname], "-.")
	if host == "" {
		return "", fmt.Errorf("metadata.name: hostname %q has no valid part", name)
	}
	return host, nil
}

// SandboxHostname returns the hostname of the pod's sandbox: the fully qualified domain
// name if the pod sets setHostnameAsFQDN, and "" if the pod is in the host network.
func SandboxHostname(pod *v1.Pod, clusterDomain string) (string, error) {
	if pod.Spec.HostNetwork {
		return "", nil
	}
	host, domain, err := Hostname(pod, clusterDomain)
	if err != nil || pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN || domain == "" {
		return host, err
	}
	name := host + "." + domain
	if len(name) > maxKernelName {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			name, maxKernelName, len(name))
	}
	return name, nil
}
