package podenv

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// The API server's own service, which every pod is told of (pe-12).
const (
	masterService   = "kubernetes"
	masterNamespace = "default"
)

// serviceLinks returns the variables that tell of services, sorted by the
// services' names. Where those of two services have one name, as with
// db-port-80-tcp and port 80 of db, the first has it.
func serviceLinks(f Facts) *Env {
	e := &Env{index: map[string]int{}}
	for _, s := range visible(f) {
		for _, v := range linksOf(s) {
			if _, taken := e.index[v.Name]; !taken {
				e.put(v)
			}
		}
	}
	return e
}

// visible returns the services that have an address and that the pod is told of:
// one per name, its own namespace's before the master.
func visible(f Facts) []*v1.Service {
	own := f.Pod.Spec.EnableServiceLinks == nil || *f.Pod.Spec.EnableServiceLinks
	byName := map[string]*v1.Service{}
	for _, s := range f.Services {
		if s == nil || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone {
			continue
		}
		switch {
		case own && s.Namespace == f.Pod.Namespace:
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

// linksOf returns the variables of one service: Kubernetes' own, then those that
// Docker's links had.
func linksOf(s *v1.Service) []Var {
	from := Source{Kind: Service, Index: -1, Object: s.Name}
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
