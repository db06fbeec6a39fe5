package config

import (
	"errors"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// AddFlags declares all flags of the kubelet, and those that Kubernetes 1.37 has removed,
// except flags that fs already has. They set fields of cfg, so that they take precedence
// over a file that was read before, and flags. In their names fs then accepts underscores
// instead of dashes, as the kubelet does.
//
// After fs was parsed, check returns warnings about flags and feature gates that have no
// effect, and an error about flags that are refused.
func AddFlags(fs *pflag.FlagSet, cfg *kubeletconfig.KubeletConfiguration, flags *Flags) (check func() (warnings []string, err error)) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	var given []func() (string, error)
	gates := map[string]bool{} // of --feature-gates
	for f := range fields {
		if f.flag == "" || fs.Lookup(f.flag) != nil {
			continue
		}
		value := &flagValue{kind: f.flagKind(), text: f.def}
		value.set = func(text string, more bool) error {
			if f.name == "featureGates" {
				_ = setMap(reflect.ValueOf(&gates).Elem(), text, "=", true) // f.set reports the error
			}
			if !more {
				given = append(given, func() (string, error) { return f.checkFlag(cfg) })
			}
			return f.set(cfg, text, more)
		}
		value.declare(fs, f.flag, f.effect.mark()+f.doc)
	}
	for _, f := range nodeFlags {
		if fs.Lookup(f.name) != nil {
			continue
		}
		value := &flagValue{kind: f.kind}
		value.set = func(text string, more bool) error {
			given = append(given, func() (string, error) { return f.check(text) })
			if f.set == nil {
				return nil
			}
			return f.set(flags, text, more)
		}
		value.declare(fs, f.name, f.effect.mark()+f.doc)
	}
	return func() (warnings []string, err error) {
		for _, check := range given {
			warning, failed := check()
			err = errors.Join(err, failed)
			if warning != "" {
				warnings = append(warnings, warning)
			}
		}
		return append(warnings, gateWarnings(gates)...), err
	}
}

// mark returns the beginning of the description of a flag.
func (e effect) mark() string {
	return map[effect]string{ignored: "no effect: ", refused: "refused: "}[e]
}

// A flagValue is a pflag.Value that sets fields. It stores the given values as text, as
// String returns them.
type flagValue struct {
	kind  string
	text  string
	given bool
	set   func(text string, more bool) error
}

// declare declares the flag. A value of the kinds "bool" and "version" may be omitted.
func (v *flagValue) declare(fs *pflag.FlagSet, name, usage string) {
	shorthand := ""
	if name == "v" {
		shorthand = "v"
	}
	flag := fs.VarPF(v, name, shorthand, usage)
	if v.kind == "bool" || v.kind == "version" {
		flag.NoOptDefVal = "true"
	}
	flag.Annotations = classification(name)
}

// FlagValues returns the value of each flag, by name, for /flagz: the one that was given or
// the default. Values that may be credentials are masked, as by [Masked].
func FlagValues(fs *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		values[f.Name] = f.Value.String()
		if f.Changed {
			values[f.Name] = maskFlag(values[f.Name], f.Annotations)
		}
	})
	return values
}

// String returns the given values, separated by commas, or else the default.
func (v *flagValue) String() string { return v.text }

// Type returns the kind of the value, as the help of the kubelet names it.
func (v *flagValue) Type() string { return v.kind }

// Set implements pflag.Value.
func (v *flagValue) Set(text string) error {
	err := v.set(text, v.given)
	if v.given && (v.kind == "strings" || strings.HasPrefix(v.kind, "map")) {
		text = v.text + "," + text
	}
	v.text, v.given = text, true
	return err
}
