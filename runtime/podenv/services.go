package podenv

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// The service of the API server, whose variables every pod has.
const (
	masterService   = "kubernetes"
	masterNamespace = "default"
)

// serviceLinks returns the variables of services, sorted by service. If two services define the same
// variable, as db-port-80-tcp and port 80 of db do, the first one is used.
func serviceLinks(in Inputs) *Env {
	e := &Env{index: map[string]int{}}
	for _, s := range visible(in) {
		for _, v := range linksOf(s) {
			if _, taken := e.index[v.Name]; !taken {
				e.put(v)
			}
		}
	}
	return e
}

// visible returns the services with a cluster IP that the pod has variables of, one per name: one of
// the pod's namespace takes precedence over the master service (rule pe-12).
func visible(in Inputs) []*v1.Service {
	own := in.Pod.Spec.EnableServiceLinks == nil || *in.Pod.Spec.EnableServiceLinks
	byName := map[string]*v1.Service{}
	for _, s := range in.Services {
		if s == nil || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone {
			continue
		}
		switch {
		case own && s.Namespace == in.Pod.Namespace:
			byName[s.Name] = s
		case s.Name == masterService && s.Namespace == masterNamespace && byName[s.Name] == nil:
			byName[s.Name] = s
		}
	}
	list := make([]*v1.Service, 0, len(byName))
	for _, s := range byName {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *v1.Service) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// linksOf returns the variables of a service: those of Kubernetes, then those in the format of
// Docker links.
func linksOf(s *v1.Service) []Var {
	from := Source{Kind: kindService, Index: -1, Object: s.Name}
	name := envName(s.Name)
	ip := s.Spec.ClusterIP
	vars := []Var{{name + "_SERVICE_HOST", ip, from}}
	if len(s.Spec.Ports) == 0 {
		return vars
	}
	vars = append(vars, Var{name + "_SERVICE_PORT", number(s.Spec.Ports[0].Port), from})
	for _, p := range s.Spec.Ports {
		if p.Name != "" {
			vars = append(vars, Var{name + "_SERVICE_PORT_" + envName(p.Name), number(p.Port), from})
		}
	}
	for i, p := range s.Spec.Ports {
		protocol := strings.ToUpper(string(cmp.Or(p.Protocol, v1.ProtocolTCP)))
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, number(p.Port))
		if i == 0 {
			vars = append(vars, Var{name + "_PORT", url, from})
		}
		prefix := name + "_PORT_" + number(p.Port) + "_" + protocol
		vars = append(vars,
			Var{prefix, url, from},
			Var{prefix + "_PROTO", strings.ToLower(protocol), from},
			Var{prefix + "_PORT", number(p.Port), from},
			Var{prefix + "_ADDR", ip, from})
	}
	return vars
}

func envName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }

func number(n int32) string { return strconv.Itoa(int(n)) }
