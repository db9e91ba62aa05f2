package terms

import "strings"

// stopWords are the function words of English and Russian, folded. They carry no meaning of their own, and a question
// that shares only these with a text shares nothing.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, list := range []string{englishStopWords, russianStopWords} {
		for _, w := range strings.Fields(list) {
			m[w] = true
		}
	}
	return m
}()

const englishStopWords = `
a an the and or but nor so if then than as of at by for from in into on onto off out over under up down to with without
within about above below between during before after against through until while because
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
this that these those here there who whom whose which what when where why how
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would
not no yes also just only very too more most some any all both each few other such own same again once
im ive id youre hes shes its were theyre dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt
hasnt havent hadnt`

const russianStopWords = `
и а но да или либо ни не нет же ли бы б ведь вот лишь только уже еще даже если то что чтобы как так когда где куда
откуда почему зачем потому поэтому пока хотя
в во на с со к ко у о об обо от ото до за из изо по под подо над надо при про через для без между перед около после
среди ради
я меня мне мной мы нас нам нами ты тебя тебе тобой вы вас вам вами он его ему им нем нему она ее ей ею ней оно они их
ими них ним себя себе собой
мой моя мое мои твой наш ваш свой своя свое свои
это этот эта эти этого этой этих этом этому тот та те того той тех том тому весь вся все всех всего
кто кого кому кем чем чего чему какой какая какое какие каких который которая которое которые которых которого
есть был была было были будет будут быть бывает можно нужно надо
там тут здесь тогда сейчас теперь очень более менее также тоже`
