package podconfig

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxHostname   = 63 // a label of the DNS
	maxKernelName = 64 // what Linux takes as a hostname
)

// Hostname returns the pod's hostname and the domain it is in, "" for none
// (pe-18). A hostnameOverride is all there is: it stands above hostname and
// subdomain. The error names the field that is no name.
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
	if host, err = truncate(host); err != nil {
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
	domain = spec.Subdomain + "." + pod.Namespace + ".svc"
	if clusterDomain != "" { // or the kernel's hostname would end in a dot
		domain += "." + clusterDomain
	}
	return host, domain, nil
}

// truncate makes a label of a pod's name that is too long for one.
func truncate(name string) (string, error) {
	if len(name) <= maxHostname {
		return name, nil
	}
	host := strings.TrimRight(name[:maxHostname], "-.")
	if host == "" {
		return "", fmt.Errorf("metadata.name: hostname %q has no valid part", name)
	}
	return host, nil
}

// SandboxHostname returns the hostname that the pod's sandbox is made with: the
// whole domain name for a pod that asks for it (pe-19), and none for a pod of the
// host's network, which has the host's (rt-18).
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
		return "", fmt.Errorf("spec.setHostnameAsFQDN: hostname %q, as an FQDN, has more than %d characters", name, maxKernelName)
	}
	return name, nil
}
