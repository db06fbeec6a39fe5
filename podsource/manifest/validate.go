package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns the errors of a new pod, as the API server does (rule src-20). The pod must be
// defaulted ([Default]). Each error names its field, and the value if there is one.
//
// It checks all fields that determine how a pod runs on a node. It does not check placement (affinity,
// topologySpreadConstraints, schedulingGates, schedulingGroup), Windows and SELinux options, the fields
// of network volumes other than nfs, csi and claims, restrictions of feature gates and admission, and
// the values of annotations.
func Validate(pod *v1.Pod) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&pod.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	// The UID becomes a directory's name.
	if pod.UID != "" {
		errs = append(errs, invalid(meta.Child("uid"), string(pod.UID), content.IsPathSegmentName(string(pod.UID)))...)
	}
	return append(errs, validateSpec(&pod.Spec, field.NewPath("spec"))...)
}

func validateSpec(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, validateContainers(spec, volumes, path)...)
	errs = append(errs, oneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	errs = append(errs, validateTimes(spec, path)...)
	errs = append(errs, validateNames(spec, path)...)
	errs = append(errs, validateDNS(spec, path)...)
	errs = append(errs, validatePodSecurity(spec, path)...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validatePodResources(spec, path)...)

	for i, gate := range spec.ReadinessGates {
		at := path.Child("readinessGates").Index(i).Child("conditionType")
		errs = append(errs, invalid(at, string(gate.ConditionType), content.IsLabelKey(string(gate.ConditionType)))...)
	}
	if spec.OS != nil {
		errs = append(errs, oneOf(path.Child("os", "name"), spec.OS.Name, v1.Linux, v1.Windows)...)
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("preemptionPolicy"), *p, v1.PreemptLowerPriority, v1.PreemptNever)...)
	}
	return errs
}

func validateTimes(spec *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if p := spec.TerminationGracePeriodSeconds; p == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	} else {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*p, path.Child("terminationGracePeriodSeconds"))...)
	}
	if p := spec.ActiveDeadlineSeconds; p != nil && (*p < 1 || *p > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *p, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	return errs
}

// validateNames checks references by name.
func validateNames(spec *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	optional := func(at *field.Path, value string, check func(string) []string) {
		if value != "" {
			errs = append(errs, invalid(at, value, check(value))...)
		}
	}
	optional(path.Child("nodeName"), spec.NodeName, validation.IsDNS1123Subdomain)
	optional(path.Child("serviceAccountName"), spec.ServiceAccountName, validation.IsDNS1123Subdomain)
	optional(path.Child("priorityClassName"), spec.PriorityClassName, validation.IsDNS1123Subdomain)
	optional(path.Child("hostname"), spec.Hostname, validation.IsDNS1123Label)
	optional(path.Child("subdomain"), spec.Subdomain, validation.IsDNS1123Label)
	if p := spec.RuntimeClassName; p != nil {
		errs = append(errs, invalid(path.Child("runtimeClassName"), *p, validation.IsDNS1123Subdomain(*p))...)
	}
	if p := spec.HostnameOverride; p != nil {
		at := path.Child("hostnameOverride")
		errs = append(errs, invalid(at, *p, validation.IsDNS1123Subdomain(*p))...)
		if len(*p) > 64 {
			errs = append(errs, field.TooLong(at, *p, 64)) // the kernel's limit
		}
		if spec.HostNetwork {
			errs = append(errs, field.Forbidden(at, "may not be set with `hostNetwork`"))
		}
		if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
			errs = append(errs, field.Forbidden(at, "may not be set with `setHostnameAsFQDN`"))
		}
	}
	for i, ref := range spec.ImagePullSecrets {
		if ref.Name == "" {
			errs = append(errs, field.Required(path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		value, at := spec.NodeSelector[key], path.Child("nodeSelector").Key(key)
		errs = append(errs, invalid(at, key, content.IsLabelKey(key))...)
		errs = append(errs, invalid(at, value, content.IsLabelValue(value))...)
	}
	claims := make(map[string]bool)
	for i, claim := range spec.ResourceClaims {
		at := path.Child("resourceClaims").Index(i)
		errs = append(errs, uniqueLabel(at.Child("name"), claim.Name, claims)...)
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			errs = append(errs, field.Invalid(at, claim.Name, "must set exactly one of `resourceClaimName` and `resourceClaimTemplateName`"))
		}
	}
	return errs
}

// The resolver's limits (resolv.conf), which the API server enforces.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

func validateDNS(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		v1.DNSClusterFirstWithHostNet, v1.DNSClusterFirst, v1.DNSDefault, v1.DNSNone)
	at := path.Child("dnsConfig")
	cfg := spec.DNSConfig
	if cfg == nil {
		if spec.DNSPolicy == v1.DNSNone {
			errs = append(errs, field.Required(at, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", v1.DNSNone)))
		}
		cfg = new(v1.PodDNSConfig)
	} else if spec.DNSPolicy == v1.DNSNone && len(cfg.Nameservers) == 0 {
		errs = append(errs, field.Required(at.Child("nameservers"), fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", v1.DNSNone)))
	}
	if n := len(cfg.Nameservers); n > maxNameservers {
		errs = append(errs, field.TooMany(at.Child("nameservers"), n, maxNameservers))
	}
	for i, ip := range cfg.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("nameservers").Index(i), ip, true, nil)...)
	}
	if n := len(cfg.Searches); n > maxSearches {
		errs = append(errs, field.TooMany(at.Child("searches"), n, maxSearches))
	}
	chars := 0
	for i, search := range cfg.Searches {
		chars += len(search) + 1
		name := search
		if len(name) > 1 && name[len(name)-1] == '.' {
			name = name[:len(name)-1]
		}
		if name != "." {
			errs = append(errs, invalid(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(name))...)
		}
	}
	if chars-1 > maxSearchChars {
		errs = append(errs, field.Invalid(at.Child("searches"), len(cfg.Searches), fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchChars)))
	}
	for i, option := range cfg.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i), "must not be empty"))
		}
	}
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), alias.IP, true, nil)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, invalid(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	return errs
}

func validateTolerations(tolerations []v1.Toleration, path *field.Path) (errs field.ErrorList) {
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			errs = append(errs, invalid(at.Child("key"), t.Key, content.IsLabelKey(t.Key))...)
		} else if t.Operator != v1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		switch t.Operator {
		case v1.TolerationOpEqual, "":
			errs = append(errs, invalid(at.Child("value"), t.Value, content.IsLabelValue(t.Value))...)
		case v1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be empty when `operator` is 'Exists'"))
			}
		case v1.TolerationOpLt, v1.TolerationOpGt:
			errs = append(errs, invalid(at.Child("value"), t.Value, content.IsDecimalInteger(t.Value))...)
		default:
			errs = append(errs, oneOf(at.Child("operator"), t.Operator, v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt)...)
		}
		if t.Effect != "" {
			errs = append(errs, oneOf(at.Child("effect"), t.Effect, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)...)
		}
		if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be 'NoExecute' when `tolerationSeconds` is set"))
		}
	}
	return errs
}

// invalid returns an error for each message about a value.
func invalid(path *field.Path, value any, complaints []string) (errs field.ErrorList) {
	for _, complaint := range complaints {
		errs = append(errs, field.Invalid(path, value, complaint))
	}
	return errs
}

// oneOf checks a value that has to be one of a few.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("must be one of %q", allowed))}
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// uniqueLabel checks a name that is a DNS label and not in seen, to which it
// adds it.
func uniqueLabel(path *field.Path, name string, seen map[string]bool) (errs field.ErrorList) {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "")}
	case seen[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen[name] = true
	return invalid(path, name, validation.IsDNS1123Label(name))
}
