package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// An ignoredFlag is a flag of a kubelet that has no field of a KubeletConfiguration and
// no effect here. It is accepted, with a warning, so that a command line for a kubelet
// starts the agent; or refused, if something relies on its effect.
type ignoredFlag struct {
	name    string
	boolean bool
	refused bool
	why     string // it has no effect

	value string
}

const ignoresCadvisor = "the agent does not run cAdvisor; it reads cgroups itself"

// ignoredFlags returns the flags of kubelet 1.36 that have no effect here.
func ignoredFlags() []*ignoredFlag {
	flags := []*ignoredFlag{
		{name: "runtime-cgroups", why: "the cgroup of the runtime is not reported"},
		{name: "minimum-container-ttl-duration", why: "dead containers are removed with their pod, except the newest"},
		{name: "maximum-dead-containers-per-container", why: "dead containers are removed with their pod, except the newest"},
		{name: "maximum-dead-containers", why: "dead containers are removed with their pod, except the newest"},
		{name: "vmodule", why: "--v is for all parts of the agent"},
		{name: "log-flush-frequency", why: "each line is written at once"},
		{name: "cloud-provider", refused: true, why: "the agent does not wait for a cloud provider to initialize its node"},
		{name: "lock-file", refused: true, why: "the agent locks --root instead"},
		{name: "exit-on-lock-contention", boolean: true, refused: true, why: "the agent locks --root instead"},
		{name: "experimental-mounter-path", refused: true, why: "the agent mounts by system call"},
		{name: "experimental-allocatable-ignore-eviction", boolean: true, refused: true, why: "what evictionHard keeps free is never allocatable"},
	}
	for _, name := range []string{"log-text-split-stream", "log-json-split-stream"} {
		flags = append(flags, &ignoredFlag{name: name, boolean: true, why: "logs go to stderr"})
	}
	for _, name := range []string{"log-text-info-buffer-size", "log-json-info-buffer-size"} {
		flags = append(flags, &ignoredFlag{name: name, why: "each line is written at once"})
	}
	for _, name := range []string{
		"housekeeping-interval", "global-housekeeping-interval", "application-metrics-count-limit", "boot-id-file", "machine-id-file",
		"container-hints", "containerd", "containerd-namespace", "event-storage-age-limit", "event-storage-event-limit",
		"storage-driver-user", "storage-driver-password", "storage-driver-host", "storage-driver-db", "storage-driver-table", "storage-driver-buffer-duration",
	} {
		flags = append(flags, &ignoredFlag{name: name, why: ignoresCadvisor})
	}
	for _, name := range []string{"enable-load-reader", "log-cadvisor-usage", "storage-driver-secure"} {
		flags = append(flags, &ignoredFlag{name: name, boolean: true, why: ignoresCadvisor})
	}
	return flags
}

func (f *ignoredFlag) String() string   { return "" }
func (f *ignoredFlag) IsBoolFlag() bool { return f.boolean }

func (f *ignoredFlag) Set(text string) error {
	if _, err := strconv.ParseBool(text); f.boolean && err != nil {
		return fmt.Errorf("want true or false")
	}
	f.value = text
	return nil
}

// complaint returns a warning about the flag, or an error if it is refused; neither if
// its value is empty or false.
func (f *ignoredFlag) complaint() (warning string, err error) {
	switch on, _ := strconv.ParseBool(f.value); {
	case f.value == "" || f.boolean && !on:
		return "", nil
	case f.refused:
		return "", fmt.Errorf("--%s: %s", f.name, f.why)
	}
	return fmt.Sprintf("--%s changes nothing: %s", f.name, f.why), nil
}

// declareIgnored declares the flags of a kubelet that have no effect.
func declareIgnored(fs *flagSet) {
	for _, f := range ignoredFlags() {
		fs.Var(f, f.name, map[bool]string{false: "changes nothing: ", true: "refused: "}[f.refused]+f.why)
	}
}

var (
	verbosityWord   = regexp.MustCompile(`^--?v$`)
	verbosityNumber = regexp.MustCompile(`^[0-9]+$`)
	verbosityShort  = regexp.MustCompile(`^-v([0-9]+)$`)
)

// asKubelet returns the arguments in the form that package flag reads. A kubelet also
// accepts the verbosity as "--v 4", "-v 4" and "-v4", and underscores in names of flags.
func asKubelet(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch short := verbosityShort.FindStringSubmatch(arg); {
		case arg == "--":
			return append(out, args[i:]...)
		case short != nil:
			arg = "--v=" + short[1]
		case verbosityWord.MatchString(arg) && i+1 < len(args) && verbosityNumber.MatchString(args[i+1]):
			i++
			arg = "--v=" + args[i]
		case strings.HasPrefix(arg, "--"):
			name, value, hasValue := strings.Cut(arg, "=")
			if arg = strings.ReplaceAll(name, "_", "-"); hasValue {
				arg += "=" + value
			}
		}
		out = append(out, arg)
	}
	return out
}

// reservedMemoryFlag reads the value of --reserved-memory, "0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi".
// The flag may be given more than once.
type reservedMemoryFlag struct {
	into  *[]kubeletconfig.MemoryReservation
	given bool
}

func (f *reservedMemoryFlag) String() string { return "" }

func (f *reservedMemoryFlag) Set(text string) error {
	if !f.given { // what the file has is replaced
		*f.into, f.given = nil, true
	}
	for part := range strings.SplitSeq(text, ";") {
		number, limits, ok := strings.Cut(part, ":")
		node, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil || node < 0 {
			return fmt.Errorf("%q is not NODE:memory=AMOUNT,…", part)
		}
		if slices.ContainsFunc(*f.into, func(r kubeletconfig.MemoryReservation) bool { return int64(r.NumaNode) == node }) {
			return fmt.Errorf("NUMA node %d is there twice", node)
		}
		var amounts map[string]string
		if err := pairs(&amounts, "=")(limits); err != nil {
			return err
		}
		r := kubeletconfig.MemoryReservation{NumaNode: int32(node), Limits: map[v1.ResourceName]resource.Quantity{}}
		for name, amount := range amounts {
			q, err := resource.ParseQuantity(amount)
			if err != nil || q.Sign() < 0 || name != string(v1.ResourceMemory) && !strings.HasPrefix(name, v1.ResourceHugePagesPrefix) {
				return fmt.Errorf("%s=%s: want memory or hugepages-SIZE, and an amount", name, amount)
			}
			r.Limits[v1.ResourceName(name)] = q
		}
		*f.into = append(*f.into, r)
	}
	return nil
}
