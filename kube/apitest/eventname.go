package apitest

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// An instant has the Events that were created at one time, as sent, by the name that was
// requested.
type instant struct {
	at      time.Time
	created map[key][]object
}

// nameEventLocked makes the name of a new Event unique. Clients name Events by the object and
// the time in nanoseconds, which is unique only if time passes: in a synctest bubble, several
// Events of an object have the same name. An Event with the content of an existing one
// keeps its name, as a request that is repeated.
func (s *Server) nameEventLocked(r *request, one object) {
	if _, ok := one.(*v1.Event); !ok || r.Verb != "create" || r.dryRun() {
		return
	}
	if now := time.Now(); !now.Equal(s.table.events.at) {
		s.table.events = instant{now, map[key][]object{}}
	}
	at := keyOf(one)
	earlier, exists := s.table.events.created[at], s.table.of(r.kind).all[at] != nil
	if exists && len(earlier) == 0 {
		return // created at another time
	}
	for _, other := range earlier {
		if sameContent(other, one) {
			return
		}
	}
	s.table.events.created[at] = append(earlier, one)
	if exists {
		one.SetName(fmt.Sprintf("%s-%d", at.name, len(earlier)+1))
	}
}
