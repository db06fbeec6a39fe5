package podenv

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// valueFrom returns the value that the source of variable v has, and whether it
// has one: it need not if it is optional. What people know from the kubelet of
// objects is said exactly (pe-6); other errors begin with the variable's name.
func valueFrom(f Facts, c *v1.Container, v *v1.EnvVar) (value string, found bool, err error) {
	src := v.ValueFrom
	switch {
	case src.ConfigMapKeyRef != nil:
		ref := src.ConfigMapKeyRef
		data, err := f.configMap(ref.Name)
		return keyOf(data, err, is(ref.Optional), "couldn't find key %v in ConfigMap %v/%v", ref.Key, f.Pod.Namespace, ref.Name)
	case src.SecretKeyRef != nil:
		ref := src.SecretKeyRef
		data, err := f.secret(ref.Name)
		return keyOf(data, err, is(ref.Optional), "couldn't find key %v in Secret %v/%v", ref.Key, f.Pod.Namespace, ref.Name)
	case src.FieldRef != nil:
		value, err = FieldValue(f, src.FieldRef)
		found = true
	case src.ResourceFieldRef != nil:
		value, err = ResourceFieldValue(f, c, src.ResourceFieldRef)
		found = true
	case src.FileKeyRef != nil:
		value, found, err = f.fileKey(src.FileKeyRef)
	default:
		err = errors.New("valueFrom names no source that is supported")
	}
	if err != nil {
		return "", false, fmt.Errorf("env %s: %w", v.Name, err)
	}
	return value, found, nil
}

// FieldValue returns the value of a fieldRef (pe-7). A label or annotation that the
// pod doesn't have is empty.
func FieldValue(f Facts, ref *v1.ObjectFieldSelector) (string, error) {
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		return "", fmt.Errorf("fieldRef: unsupported apiVersion: %v", ref.APIVersion)
	}
	switch ref.FieldPath {
	case "metadata.name":
		return f.Pod.Name, nil
	case "metadata.namespace":
		return f.Pod.Namespace, nil
	case "metadata.uid":
		return string(f.Pod.UID), nil
	case "spec.nodeName":
		return f.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return f.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(f.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(f.HostIPs, ","), nil
	case "status.podIP":
		return first(podIPs(f)), nil
	case "status.podIPs":
		return strings.Join(podIPs(f), ","), nil
	}
	if key, ok := subscript(ref.FieldPath, "metadata.labels"); ok {
		return f.Pod.Labels[key], nil
	}
	if key, ok := subscript(ref.FieldPath, "metadata.annotations"); ok {
		return f.Pod.Annotations[key], nil
	}
	return "", fmt.Errorf("fieldRef: unsupported fieldPath: %v", ref.FieldPath)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// podIPs returns the pod's addresses as its status shows them (st-45): the first
// of the family that the node's own begin with, then the first of the other. A
// node that says nothing of its own leaves the sandbox's order.
func podIPs(f Facts) []string {
	var ips []netip.Addr
	for _, s := range f.PodIPs {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	if len(ips) == 0 {
		return nil
	}
	four := ips[0].Is4()
	for _, s := range f.HostIPs {
		if ip, err := netip.ParseAddr(s); err == nil {
			four = ip.Unmap().Is4()
			break
		}
	}
	var picked []string
	for _, family := range []bool{four, !four} {
		for _, ip := range ips {
			if ip.Is4() == family {
				picked = append(picked, ip.String())
				break
			}
		}
	}
	return picked
}

// subscript returns the key of a path such as metadata.labels['key'].
func subscript(path, name string) (string, bool) {
	key, ok := strings.CutPrefix(path, name+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}
