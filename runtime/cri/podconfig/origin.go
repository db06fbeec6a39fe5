package podconfig

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A FieldOrigin is the source of a field of a container's security context.
type FieldOrigin string

// The origins.
const (
	OfContainer  FieldOrigin = "container"  // its security context
	OfAnnotation FieldOrigin = "annotation" // an annotation of the pod for this container
	OfPod        FieldOrigin = "pod"        // its security context or spec
	OfVolumes    FieldOrigin = "volumes"    // their supplemental groups
	OfImage      FieldOrigin = "image"
	OfNode       FieldOrigin = "node" // its configuration
	ByDefault    FieldOrigin = "default"
)

// A SecurityField is a field of a container's effective security context, with its origin.
type SecurityField struct {
	Name  string // as in a manifest; for namespaces hostNetwork, hostPID, hostIPC and hostUsers
	Value string // as sent to the runtime; empty if the runtime chooses it
	From  FieldOrigin

	// Overridden is the pod's value if the container overrides it with another.
	Overridden string
}

// String returns, for example, "runAsUser: 1000 (container, instead of 2000)".
func (f SecurityField) String() string {
	value, instead := f.Value, ""
	if value == "" {
		value = "-"
	}
	if f.Overridden != "" {
		instead = ", instead of " + f.Overridden
	}
	return fmt.Sprintf("%s: %s (%s%s)", f.Name, value, f.From, instead)
}

// SecurityFields returns the fields of a container's security context with their origins,
// in a fixed order. It has the values and errors of [Container].
func SecurityFields(in PodInput, inst ContainerInput) ([]SecurityField, error) {
	config, err := Container(in, inst)
	if err != nil {
		return nil, err
	}
	own, of := contexts(in.Pod, inst.Container)
	sc, spec := config.Linux.SecurityContext, in.Pod.Spec
	user, userFrom := userOf(sc), ByDefault
	if inst.User != (User{}) {
		userFrom = OfImage
	}
	fields := []SecurityField{
		overridden("runAsUser", user, own.RunAsUser, of.RunAsUser, userFrom),
		overridden("runAsGroup", number(sc.RunAsGroup), own.RunAsGroup, of.RunAsGroup, ByDefault),
		overridden("runAsNonRoot", text(or(own.RunAsNonRoot, of.RunAsNonRoot)), own.RunAsNonRoot, of.RunAsNonRoot, ByDefault),
		{Name: "supplementalGroups", Value: joined(sc.SupplementalGroups), From: groupsFrom(in, of)},
		overridden("supplementalGroupsPolicy", sc.SupplementalGroupsPolicy.String(), nil, of.SupplementalGroupsPolicy, ByDefault),
		overridden("privileged", fmt.Sprint(sc.Privileged), own.Privileged, nil, ByDefault),
		overridden("readOnlyRootFilesystem", fmt.Sprint(sc.ReadonlyRootfs), own.ReadOnlyRootFilesystem, nil, ByDefault),
		overridden("allowPrivilegeEscalation", fmt.Sprint(!sc.NoNewPrivs), own.AllowPrivilegeEscalation, nil, ByDefault),
		overridden("capabilities", capabilities(sc.Capabilities), own.Capabilities, nil, ByDefault),
		overridden("procMount", procMount(sc), own.ProcMount, nil, ByDefault),
		seccompField(sc, own, of, in.Node),
		appArmorField(in, inst, sc, own, of),
		seLinuxField(sc, own, of),
	}
	ns := sc.NamespaceOptions
	pid := flagged("hostPID", ns.GetPid().String(), spec.HostPID || spec.ShareProcessNamespace != nil)
	if ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		pid.From = OfContainer // its targetContainerName
	}
	return append(fields,
		flagged("hostNetwork", ns.GetNetwork().String(), spec.HostNetwork),
		flagged("hostIPC", ns.GetIpc().String(), spec.HostIPC),
		pid,
		flagged("hostUsers", ns.GetUsernsOptions().GetMode().String(), spec.HostUsers != nil),
	), nil
}

// overridden returns a field that the container, the pod or neither may set.
func overridden[T any](name, value string, own, of *T, otherwise FieldOrigin) SecurityField {
	f := SecurityField{Name: name, Value: value, From: otherwise}
	switch {
	case own != nil:
		f.From = OfContainer
		if of != nil && fmt.Sprint(*own) != fmt.Sprint(*of) {
			f.Overridden = fmt.Sprint(*of)
		}
	case of != nil:
		f.From = OfPod
	}
	return f
}

// flagged returns a field of the pod's spec.
func flagged(name, value string, set bool) SecurityField {
	f := SecurityField{Name: name, Value: value, From: ByDefault}
	if set {
		f.From = OfPod
	}
	return f
}

func seccompField(sc *runtimeapi.LinuxContainerSecurityContext, own *v1.SecurityContext, of *v1.PodSecurityContext, n Node) SecurityField {
	otherwise := ByDefault
	if n.Security.SeccompDefault {
		otherwise = OfNode
	}
	f := overridden("seccompProfile", profile(sc.Seccomp), own.SeccompProfile, of.SeccompProfile, otherwise)
	if f.Overridden = ""; own.SeccompProfile != nil && of.SeccompProfile != nil {
		if was, err := seccomp(of.SeccompProfile, n); err == nil && profile(was) != f.Value {
			f.Overridden = profile(was)
		}
	}
	return f
}

func appArmorField(in PodInput, inst ContainerInput, sc *runtimeapi.LinuxContainerSecurityContext, own *v1.SecurityContext, of *v1.PodSecurityContext) SecurityField {
	f := overridden("appArmorProfile", profile(sc.Apparmor), own.AppArmorProfile, of.AppArmorProfile, ByDefault)
	if f.From != OfContainer && in.Pod.Annotations[appArmorAnnotation+inst.Container.Name] != "" {
		f.From = OfAnnotation
	}
	if f.Overridden = ""; f.From != OfPod && of.AppArmorProfile != nil {
		if was, _, err := appArmor(nil, "", of.AppArmorProfile); err == nil && profile(was) != f.Value {
			f.Overridden = profile(was)
		}
	}
	return f
}

func seLinuxField(sc *runtimeapi.LinuxContainerSecurityContext, own *v1.SecurityContext, of *v1.PodSecurityContext) SecurityField {
	f := overridden("seLinuxOptions", label(sc.SelinuxOptions), own.SELinuxOptions, of.SELinuxOptions, ByDefault)
	if f.Overridden = ""; own.SELinuxOptions != nil && of.SELinuxOptions != nil {
		if was := label(selinux(of.SELinuxOptions)); was != f.Value {
			f.Overridden = was
		}
	}
	return f
}

func groupsFrom(in PodInput, of *v1.PodSecurityContext) FieldOrigin {
	switch {
	case of.FSGroup != nil || len(of.SupplementalGroups) > 0:
		return OfPod
	case len(in.Groups) > 0:
		return OfVolumes
	}
	return ByDefault
}

// userOf returns the ID or name of the container's user.
func userOf(sc *runtimeapi.LinuxContainerSecurityContext) string {
	if sc.RunAsUsername != "" {
		return sc.RunAsUsername
	}
	return number(sc.RunAsUser)
}

func number(n *runtimeapi.Int64Value) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(n.Value)
}

func text[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func joined(groups []int64) string {
	items := make([]string, len(groups))
	for i, g := range groups {
		items[i] = fmt.Sprint(g)
	}
	return strings.Join(items, " ")
}

// capabilities formats capabilities as "+NET_ADMIN -ALL".
func capabilities(c *runtimeapi.Capability) string {
	var items []string
	for _, add := range c.GetAddCapabilities() {
		items = append(items, "+"+add)
	}
	for _, drop := range c.GetDropCapabilities() {
		items = append(items, "-"+drop)
	}
	return strings.Join(items, " ")
}

func procMount(sc *runtimeapi.LinuxContainerSecurityContext) string {
	if len(sc.MaskedPaths) == 0 && len(sc.ReadonlyPaths) == 0 {
		return string(v1.UnmaskedProcMount)
	}
	return string(v1.DefaultProcMount)
}

func profile(p *runtimeapi.SecurityProfile) string {
	switch {
	case p == nil:
		return ""
	case p.LocalhostRef != "":
		return p.ProfileType.String() + " " + p.LocalhostRef
	}
	return p.ProfileType.String()
}

func label(o *runtimeapi.SELinuxOption) string {
	if o == nil {
		return ""
	}
	items := slices.DeleteFunc([]string{o.User, o.Role, o.Type, o.Level}, func(s string) bool { return s == "" })
	return strings.Join(items, ":")
}
