package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/node"
)

// Flags are the values of the kubelet's flags that are not fields of a
// KubeletConfiguration. The zero value stands for a command line without them.
type Flags struct {
	// File and DropIns are the arguments of [Read].
	File    string
	DropIns string

	// Version is empty, "true", "raw", or a version that the kubelet reports as its own.
	Version string

	// RootDir is the directory of the state. Empty: /var/lib/kubelet.
	RootDir string

	// NodeName is the name of the node. Empty: the host name.
	NodeName   string
	NodeIPs    []net.IP
	NodeLabels map[string]string

	// ExternalCloudProvider is set by --cloud-provider=external.
	ExternalCloudProvider bool

	Kubeconfig          string
	BootstrapKubeconfig string
	CertDir             string

	CredentialProviderConfig string
	CredentialProviderBinDir string
	PauseImage               string

	// RuntimeCgroup is the cgroup of the container runtime.
	RuntimeCgroup string

	// LockFile is a file that the kubelet locks before it starts; empty: none. With
	// ExitOnLockContention it stops when another process opens the file.
	LockFile             string
	ExitOnLockContention bool
}

// A nodeFlag describes a flag of the kubelet that is not a field of a KubeletConfiguration.
type nodeFlag struct {
	name     string
	kind     string // as the help of the kubelet names it
	effect   effect
	doc      string // a noun phrase; the reason if the flag is ignored or refused
	accepted string // the value that is neither warned about nor refused, in addition to the empty one and false
	removed  string // the release that has removed it; empty: it exists

	// set sets the value of an honored flag. more is set if the flag was given before.
	set func(into *Flags, text string, more bool) error
}

// nodeFlags are all flags of the kubelet that are not fields. Those of [groups] and these
// are the flags that AddFlags declares.
var nodeFlags = append(slices.Clone(honoredFlags), withoutEffect()...)

var honoredFlags = []nodeFlag{
	{name: "config", kind: "string", doc: "KubeletConfiguration file", set: setString(func(f *Flags) *string { return &f.File })},
	{name: "config-dir", kind: "string", doc: "directory of files *.conf that are merged into it, in the order of their paths", set: setString(func(f *Flags) *string { return &f.DropIns })},
	{name: "version", kind: "version", doc: "print the version, with raw in all its parts, or report another suffix of it, as v1.2.3-suffix", set: setVersion},
	{name: "root-dir", kind: "string", doc: "directory of the state", set: setString(func(f *Flags) *string { return &f.RootDir })},
	{name: "hostname-override", kind: "string", doc: "name of the node; by default the host name", set: setString(func(f *Flags) *string { return &f.NodeName })},
	{name: "node-ip", kind: "string", doc: "addresses of the node: one, or one of each family, separated by a comma", set: setIPs},
	{name: "node-labels", kind: "mapStringString", doc: "labels of the node, as key=value,…", set: setLabels},
	{name: "kubeconfig", kind: "string", doc: "kubeconfig file of the cluster; without it the kubelet is standalone", set: setString(func(f *Flags) *string { return &f.Kubeconfig })},
	{name: "bootstrap-kubeconfig", kind: "string", doc: "kubeconfig file with which a certificate is requested if --kubeconfig has no valid client certificate; otherwise it is not read", set: setString(func(f *Flags) *string { return &f.BootstrapKubeconfig })},
	{name: "cert-dir", kind: "string", doc: "directory of certificates; by default pki in --root-dir", set: setString(func(f *Flags) *string { return &f.CertDir })},
	{name: "cloud-provider", kind: "string", doc: "external: a controller of the cluster initializes the node; empty: there is none", set: setCloudProvider},
	{name: "image-credential-provider-config", kind: "string", doc: "CredentialProviderConfig file or directory", set: setString(func(f *Flags) *string { return &f.CredentialProviderConfig })},
	{name: "image-credential-provider-bin-dir", kind: "string", doc: "directory of credential provider plugins", set: setString(func(f *Flags) *string { return &f.CredentialProviderBinDir })},
	{name: "pod-infra-container-image", kind: "string", doc: "image of sandboxes, which is never deleted; by default that of the runtime", removed: "1.35", set: setString(func(f *Flags) *string { return &f.PauseImage })},
	{name: "runtime-cgroups", kind: "string", doc: "cgroup of the container runtime, reported as the system container runtime", set: setString(func(f *Flags) *string { return &f.RuntimeCgroup })},
	{name: "lock-file", kind: "string", doc: "file that the kubelet locks before it starts; it waits for another process that has locked it", set: setString(func(f *Flags) *string { return &f.LockFile })},
	{name: "exit-on-lock-contention", kind: "bool", doc: "stop when another process opens --lock-file", set: setBool(func(f *Flags) *bool { return &f.ExitOnLockContention })},
}

// withoutEffect returns the flags that are accepted, so that a kubelet's command line works
// unchanged, and those that are refused.
func withoutEffect() []nodeFlag {
	const (
		newestOnly = "terminated containers are removed with their pod, except the newest"
		noCadvisor = "there is no cAdvisor; cgroups are read directly"
		noBuffer   = "lines are written immediately"
		oneStream  = "logs are written to stderr"
	)
	flags := []nodeFlag{
		{name: "minimum-container-ttl-duration", kind: "duration", accepted: "0s", doc: newestOnly},
		{name: "maximum-dead-containers-per-container", kind: "int32", accepted: "1", doc: newestOnly},
		{name: "maximum-dead-containers", kind: "int32", accepted: "-1", doc: newestOnly},
		{name: "vmodule", kind: "pattern=N,...", doc: "patterns name source files of Kubernetes; --v applies to all packages"},
		{name: "log-flush-frequency", kind: "duration", doc: noBuffer},
		{name: "log-text-info-buffer-size", kind: "quantity", doc: noBuffer},
		{name: "log-json-info-buffer-size", kind: "quantity", doc: noBuffer},
		{name: "log-text-split-stream", kind: "bool", doc: oneStream},
		{name: "log-json-split-stream", kind: "bool", doc: oneStream},
		{name: "experimental-mounter-path", kind: "string", effect: refused, doc: "volumes are mounted by system calls"},
		{name: "experimental-allocatable-ignore-eviction", kind: "bool", effect: refused, doc: "resources that evictionHard reserves are never allocatable"},
		{name: "housekeeping-interval", kind: "duration", doc: noCadvisor},
	}
	for i := range flags {
		flags[i].effect = max(flags[i].effect, ignored)
	}
	for name, kind := range removedFlags() {
		flags = append(flags, nodeFlag{name: name, kind: kind, effect: ignored, doc: noCadvisor, removed: "1.37"})
	}
	return flags
}

// removedFlags yields the flags of Kubernetes 1.36 that 1.37 does not have.
func removedFlags() func(yield func(name, kind string) bool) {
	kinds := []struct{ kind, names string }{
		{"string", "boot-id-file container-hints containerd containerd-namespace event-storage-age-limit event-storage-event-limit machine-id-file " +
			"storage-driver-db storage-driver-host storage-driver-password storage-driver-table storage-driver-user"},
		{"duration", "global-housekeeping-interval storage-driver-buffer-duration"},
		{"int32", "application-metrics-count-limit"},
		{"bool", "enable-load-reader log-cadvisor-usage storage-driver-secure"},
	}
	return func(yield func(string, string) bool) {
		for _, k := range kinds {
			for name := range strings.FieldsSeq(k.names) {
				if !yield(name, k.kind) {
					return
				}
			}
		}
	}
}

// check returns a warning, or an error if the flag is refused or the text is not a value of
// its kind.
func (f nodeFlag) check(text string) (warning string, err error) {
	switch f.kind {
	case "bool":
		_, err = strconv.ParseBool(text)
	case "int32":
		_, err = strconv.ParseInt(text, 0, 32)
	case "duration":
		_, err = time.ParseDuration(text)
	case "quantity":
		_, err = resource.ParseQuantity(text)
	}
	switch on, _ := strconv.ParseBool(text); {
	case err != nil:
		return "", fmt.Errorf("--%s=%s: want %s", f.name, text, wantedKinds[f.kind])
	case f.removed != "" && f.effect == honored:
		return fmt.Sprintf("--%s was removed from the kubelet in Kubernetes %s, but has its effect", f.name, f.removed), nil
	case f.effect == honored || text == "" || text == f.accepted || f.kind == "bool" && !on:
		return "", nil
	case f.effect == refused:
		return "", fmt.Errorf("--%s: %s", f.name, f.doc)
	}
	return fmt.Sprintf("--%s has no effect: %s", f.name, f.doc), nil
}

// wantedKinds describes the values of the kinds that check parses.
var wantedKinds = map[string]string{
	"bool": "true or false", "int32": "a number", "duration": "a duration, such as 1m30s", "quantity": "a quantity, such as 64Ki",
}

func setString(field func(*Flags) *string) func(*Flags, string, bool) error {
	return func(into *Flags, text string, _ bool) error {
		*field(into) = text
		return nil
	}
}

func setBool(field func(*Flags) *bool) func(*Flags, string, bool) error {
	return func(into *Flags, text string, _ bool) (err error) {
		*field(into), err = strconv.ParseBool(text)
		return err
	}
}

func setIPs(into *Flags, text string, _ bool) error {
	into.NodeIPs = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		ip := net.ParseIP(strings.TrimSpace(part))
		if ip == nil {
			return fmt.Errorf("%q is not an IP address", part)
		}
		into.NodeIPs = append(into.NodeIPs, ip)
	}
	return nil
}

func setLabels(into *Flags, text string, _ bool) error {
	labels, err := node.ParseLabels(text)
	if into.NodeLabels == nil {
		into.NodeLabels = map[string]string{}
	}
	for key, value := range labels {
		into.NodeLabels[key] = value
	}
	return err
}

func setCloudProvider(into *Flags, text string, _ bool) error {
	if text != "" && text != "external" {
		return fmt.Errorf("want external or nothing: Kubernetes has no other cloud providers since 1.31")
	}
	into.ExternalCloudProvider = text == "external"
	return nil
}

func setVersion(into *Flags, text string, _ bool) error {
	if into.Version = text; text == "raw" || strings.HasPrefix(text, "v") {
		return nil
	}
	on, err := strconv.ParseBool(text)
	if into.Version = "true"; !on {
		into.Version = ""
	}
	return err
}
