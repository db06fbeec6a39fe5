package sim

import "fmt"

// runtimeLaws are about containers.
func runtimeLaws() []Law {
	return []Law{{
		Name: "one-live-instance", Rules: "lq-12",
		Says: "of one container of one pod at most one instance runs at a time",
		begin: func(t *truth) func(*Entry) string {
			return func(e *Entry) string {
				if e.Kind != Started {
					return ""
				}
				for _, c := range t.pod(e.UID).running() {
					if c.Name == e.Container.Name && c.ID != e.Container.ID {
						return fmt.Sprintf("%s was started while %s runs", e.Container.ID, c.ID)
					}
				}
				return ""
			}
		},
	}}
}
