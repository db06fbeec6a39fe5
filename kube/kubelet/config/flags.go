package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/node"
)

// flagKinds are the kinds of flags that do not follow from the type of their field.
var flagKinds = map[string]string{
	"v": "Level", "register-with-taints": "[]v1.Taint", "reserved-memory": "reserved-memory", "address": "ip", "healthz-bind-address": "ip",
	"manifest-url-header": "colonSeparatedMultimapStringString",
}

// flagKind returns the kind of the flag's value, as the help of the kubelet names it.
func (f field) flagKind() string {
	if kind, ok := flagKinds[f.flag]; ok {
		return kind
	}
	value, _ := f.value(new(kubeletconfig.KubeletConfiguration), true)
	of := value.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Struct:
		return "duration"
	case reflect.Slice:
		return "strings"
	case reflect.Map:
		return "mapString" + map[reflect.Kind]string{reflect.Bool: "Bool", reflect.String: "String"}[of.Elem().Kind()]
	case reflect.Int64:
		return "int"
	}
	return of.Kind().String()
}

// set sets the field of cfg to the value of the field's flag. Elements of lists and entries
// of maps are separated by commas. If more is set the flag was given before, and they are
// added to those. It returns an error if the value is not one of the field.
func (f field) set(cfg *kubeletconfig.KubeletConfiguration, text string, more bool) error {
	switch f.name {
	case "staticPodURLHeader":
		return setHeader(&cfg.StaticPodURLHeader, text, more)
	case "reservedMemory":
		return setReservedMemory(&cfg.ReservedMemory, text, more)
	case "registerWithTaints":
		taints, err := node.ParseTaints(text)
		if err == nil {
			cfg.RegisterWithTaints = taints
		}
		return err
	case "featureGates":
		more = true // flags override gates of the file one by one
	}
	if f.flagKind() == "ip" && net.ParseIP(text) == nil {
		return errors.New("want an IP address")
	}
	value, _ := f.value(cfg, true)
	of := value.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if !setValue(value, text, cmp.Or(f.separator, "="), more) {
		return fmt.Errorf("want %s", expected[of.Kind()])
	}
	return nil
}

// expected describes the value of a flag, by the kind of its field. A struct is a
// duration.
var expected = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.Int32: "a number", reflect.Int64: "a number", reflect.Uint32: "a number",
	reflect.Struct: "a duration, such as 1m30s", reflect.Map: "key=value,…",
}

// setValue sets value to a text. It reports false if the text is not a value of the type.
func setValue(value reflect.Value, text, separator string, more bool) bool {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return setValue(value.Elem(), text, separator, more)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		value.SetBool(on)
		return err == nil
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 0, value.Type().Bits())
		value.SetInt(n)
		return err == nil
	case reflect.Uint32:
		n, err := strconv.ParseUint(text, 0, 32)
		value.SetUint(n)
		return err == nil
	case reflect.Struct:
		d, err := time.ParseDuration(text)
		value.Set(reflect.ValueOf(metav1.Duration{Duration: d}))
		return err == nil
	case reflect.Slice:
		if !more {
			value.Set(reflect.MakeSlice(value.Type(), 0, 0))
		}
		if text != "" {
			value.Set(reflect.AppendSlice(value, reflect.ValueOf(strings.Split(text, ",")).Convert(value.Type())))
		}
		return true
	case reflect.Map:
		return setMap(value, text, separator, more)
	}
	value.SetString(text)
	return true
}

// setMap sets a map to the entries of a text, or adds them to it.
func setMap(value reflect.Value, text, separator string, more bool) bool {
	entries, err := pairs(text, separator)
	if err != nil {
		return false
	}
	all := reflect.MakeMap(value.Type())
	if more {
		for key, entry := range value.Seq2() {
			all.SetMapIndex(key, entry)
		}
	}
	for key, text := range entries {
		entry := reflect.New(value.Type().Elem()).Elem()
		if !setValue(entry, text, separator, false) {
			return false
		}
		all.SetMapIndex(reflect.ValueOf(key), entry)
	}
	value.Set(all)
	return true
}

// pairs parses name=value,name=value, with any separator between name and value. Empty
// parts are skipped.
func pairs(text, separator string) (map[string]string, error) {
	entries := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, separator)
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, fmt.Errorf("%q is not NAME%sVALUE", pair, separator)
		}
		entries[key] = strings.TrimSpace(value)
	}
	return entries, nil
}

func setHeader(into *map[string][]string, text string, more bool) error {
	entries, err := pairs(text, ":")
	if err != nil {
		return err
	}
	if !more || *into == nil {
		*into = map[string][]string{}
	}
	for key, value := range entries {
		(*into)[key] = append((*into)[key], value)
	}
	return nil
}

// setReservedMemory parses "0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi".
func setReservedMemory(into *[]kubeletconfig.MemoryReservation, text string, more bool) error {
	var all []kubeletconfig.MemoryReservation
	if more {
		all = slices.Clone(*into)
	}
	for part := range strings.SplitSeq(text, ";") {
		number, limits, ok := strings.Cut(part, ":")
		node, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil || node < 0 || limits == "" {
			return fmt.Errorf("%q is not NODE:memory=AMOUNT,…", part)
		}
		if slices.ContainsFunc(all, func(r kubeletconfig.MemoryReservation) bool { return int64(r.NumaNode) == node }) {
			return fmt.Errorf("duplicate NUMA node %d", node)
		}
		amounts, err := pairs(limits, "=")
		if err != nil {
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
		all = append(all, r)
	}
	*into = all
	return nil
}
