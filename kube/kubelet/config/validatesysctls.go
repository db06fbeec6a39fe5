package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// defaultSysctls returns the errors of defaultPodSysctls.
func (v validation) defaultSysctls() (errs []error) {
	const prefix = "invalid configuration: "
	names := slices.Sorted(maps.Keys(v.k.DefaultPodSysctls))
	if len(names) > 0 && !v.gate("DefaultPodSysctls") {
		return []error{errors.New(prefix + "DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls")}
	}
	valid := regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)
	seen := map[string]bool{}
	for _, name := range names {
		if len(name) > 253 || !valid.MatchString(name) {
			errs = append(errs, fmt.Errorf(prefix+"%q is not a valid sysctl name for defaultPodSysctls", name))
			continue
		}
		dotted := dottedSysctl(name)
		if !isNamespaced(dotted) {
			errs = append(errs, fmt.Errorf(prefix+"%q is not known to be namespaced for defaultPodSysctls", name))
		}
		if seen[dotted] {
			errs = append(errs, fmt.Errorf(prefix+"duplicate sysctl %q found in defaultPodSysctls", dotted))
		}
		seen[dotted] = true
	}
	return errs
}

// dottedSysctl returns the form of a name in which dots separate its parts. Slashes separate
// them if the first separator is one.
func dottedSysctl(name string) string {
	if first := strings.IndexAny(name, "./"); first < 0 || name[first] == '.' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

func isNamespaced(dotted string) bool {
	for _, prefix := range []string{"net.", "kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(dotted, prefix) {
			return true
		}
	}
	return dotted == "kernel.sem"
}
