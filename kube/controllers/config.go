package controllers

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// A Config selects and configures the controllers. The zero value runs all of them, and no
// scheduler.
type Config struct {
	// Controllers selects controllers as kube-controller-manager's flag --controllers does:
	// "*" selects all of them, a name selects one, and a name with the prefix "-" excludes
	// one. Names are those of kube-controller-manager, such as "deployment-controller";
	// its aliases, such as "deployment", are accepted. The package documentation lists
	// them. Nil: "*".
	Controllers []string

	// Scheduler also runs kube-scheduler with its default profile. With package fakenode,
	// set its Config.NoScheduler: two schedulers must not bind the same pods.
	Scheduler bool

	// NodeMonitorGracePeriod is the time after the last heartbeat at which a node becomes
	// unreachable. Zero: 50s, as with kube-controller-manager.
	NodeMonitorGracePeriod time.Duration

	// Logger receives the log of the controllers; a message of verbosity V has the level
	// -V. Libraries that log without a context write to klog instead. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// complete sets the defaults of cfg, or returns an error that names an invalid field.
func (cfg *Config) complete(api *rest.Config) error {
	if api == nil {
		return errors.New("controllers: the REST configuration is nil: pass that of the API server, such as the result of envtest's Environment.Start")
	}
	if cfg.NodeMonitorGracePeriod < 0 {
		return errors.New("controllers: Config.NodeMonitorGracePeriod is negative")
	}
	if cfg.NodeMonitorGracePeriod == 0 {
		cfg.NodeMonitorGracePeriod = 50 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// choose returns the controllers that the items select, in the order of all. Nil items
// select all of them.
func choose(items []string, all []component) ([]component, error) {
	if items == nil {
		return all, nil
	}
	var star bool
	include, exclude := map[string]bool{}, map[string]bool{}
	for _, item := range items {
		if item == "*" {
			star = true
			continue
		}
		name, excluded := strings.CutPrefix(item, "-")
		i := slices.IndexFunc(all, func(c component) bool { return name != "" && (c.name == name || c.alias == name) })
		switch {
		case i < 0:
			return nil, fmt.Errorf("controllers: Config.Controllers: unknown controller %q; want %q, or some of %s", name, "*", names(all))
		case excluded:
			exclude[all[i].name] = true
		default:
			include[all[i].name] = true
		}
	}
	var chosen []component
	for _, c := range all {
		if include[c.name] && exclude[c.name] {
			return nil, fmt.Errorf("controllers: Config.Controllers: controller %q is both selected and excluded", c.name)
		}
		if (star || include[c.name]) && !exclude[c.name] {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

func names(all []component) string {
	var list []string
	for _, c := range all {
		list = append(list, c.name)
	}
	return strings.Join(list, ", ")
}
