//go:build mutant && mutant_timer_effect_unheld

package mutant

// Active is the mutant of this build.
const Active = TimerEffectUnheld
